// SPDX-License-Identifier: Apache-2.0
// What all models share: how a step is printed, which protective step is left out, and whether crashes are looked at.
// Environment of the verifier: MUTANT=<number> leaves a step out; FAULTS=<number> of faults at most; CRASHES=0 looks
// for deadlocks instead of crashes (the look at a crash can always be taken, so that with it no state is an end);
// RESTARTS=1 lets life go on after a crash, once, where a model can.

byte mutant;
bool has_crashes, has_restarts;
byte faults_max;
byte faults;  // so far

inline read_environment() {
  c_code {
    now.mutant = getenv("MUTANT") ? atoi(getenv("MUTANT")) : 0;
    now.has_restarts = getenv("RESTARTS") && atoi(getenv("RESTARTS"));
    now.faults_max = getenv("FAULTS") ? atoi(getenv("FAULTS")) : 1;
    now.has_crashes = !getenv("CRASHES") || atoi(getenv("CRASHES"));
  }
}

// Exactly one of the two holds: what the mutant does, and what the protocol does.
#define MUTANT(name) (mutant == M_##name)
#define BUT(name) (mutant != M_##name)
// Something that an axiom excludes.
#define EXCLUDED(name) (mutant == E_##name)

// Guards what may go wrong.
#define FAULT (faults < faults_max) -> faults++

// Lines of a counterexample: who, a step of spec/commit.md or spec/series.md ("-" for fate), and what happened.
#ifndef ACTOR
#define ACTOR rank
#endif
#define QUOTE(...) #__VA_ARGS__
#define EXPANDED(...) QUOTE(__VA_ARGS__)
#define SAY(who, step, text) printf(EXPANDED(ACTOR %d | step | text\n), who)
#define SAY_AS(actor, step, text) printf(QUOTE(actor | step | text\n))
// The same with a number in the text, as %d.
#define SAY_OF(who, step, text, which) printf(EXPANDED(ACTOR %d | step | text\n), who, which)
#define SAY_AS_OF(actor, step, text, which) printf(QUOTE(actor | step | text\n), which)
