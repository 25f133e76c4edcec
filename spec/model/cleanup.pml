// SPDX-License-Identifier: Apache-2.0
// Clean-up of an attempt whose writers are only slow, by two processes; the second clean-up that removes the void
// marker; a crash in between and a third process after it. spec/series.md section 5; lib/series/series_remove.cc.
// README.md says what is modelled, under which axioms, and how steps are named.

// quick: N=2 FAULTS=1
// full: N=2 FAULTS=1 RESTARTS=1
// full: N=3 FAULTS=1
// unreached: every machine stops; only with RESTARTS, which is checked with the other bounds

#ifndef N
#define N 2
#endif

// Protective steps that a run may leave out: name, number, what is done instead.
#define M_no_void_marker 1  // files are removed without a void marker
#define M_void_marker_last 2  // the void marker is published after the removal
#define M_void_replaces 3  // the void marker is published by a rename that replaces
#define M_taken_name_ignored 4  // clean-up goes on although the name of the marker was taken
#define M_void_error_ignored 5  // clean-up goes on although the publication failed
#define M_void_removed_at_once 6  // the first clean-up removes the void marker too
#define M_void_taken_for_own 7  // a writer takes any marker that is there for its own
#define M_committed_cleaned_up 8  // clean-up does not ask whether there is a marker

// What an axiom excludes, shown to be needed: name, number, what happens then.
#define E_writer_alive 9  // the second clean-up runs while a writer of the attempt is alive

#include "steps.pml"
#include "files.pml"

// Files, as bits: the blob of rank r, the index, the unpublished marker; COMMIT in the two forms that it can have: the
// writer's and a void one. At most one of them has the name. The unpublished void markers are litter and left out.
#define BLOB(r) (1 << (r))
#define BLOBS (BLOB(N) - 1)
#define INDEX (1 << N)
#define MARKER (2 << N)
#define COMMIT (4 << N)
#define VOID_COMMIT (8 << N)
#define OURS (COMMIT - 1)
#define NAME_IS_TAKEN HAS(fs.now, COMMIT | VOID_COMMIT)

byte ready;     // ranks whose summary reached rank 0
byte over;      // ranks that ended, in whatever way
byte left;      // processes that ended or were ended
bool has_crashed, is_delayed, is_first_over;
byte reported;      // rank 0
#define COMMITTED 1
#define FAILED 2
#define UNKNOWN 3

// --- The writers: in short what commit.pml has at length; each may stop for good before each step.

inline write_blob(r) {
  atomic {
    create(BLOB(r));
    fs.whole = fs.whole | BLOB(r);
    sync_content(BLOB(r));
    sync_names(BLOB(r));
    ready = ready | BLOB(r);
    SAY(r, sync blobs, blob and directory synced and summary sent)
  }
}

inline publish_marker() {
  if
  :: !NAME_IS_TAKEN && HAS(fs.now, MARKER) -> create(COMMIT); SAY(0, publish, published)
  :: NAME_IS_TAKEN || !HAS(fs.now, MARKER) -> has_error = true; SAY(0, publish, the publication fails)
  :: FAULT; has_error = true; is_delayed = true; SAY(0, publish, the publication fails)
  fi
}

inline read_back(nothing) {
  if
  :: HAS(fs.now, COMMIT) || (HAS(fs.now, VOID_COMMIT) && MUTANT(void_taken_for_own)) ->
     has_error = false; SAY(0, publish, own marker seen)
  :: HAS(fs.now, VOID_COMMIT) && BUT(void_taken_for_own) -> outcome = FAILED; SAY(0, publish, another marker seen)
  :: !NAME_IS_TAKEN -> outcome = nothing; SAY(0, publish, no marker seen)
  fi
}

proctype rank(byte r) {
  byte outcome;
  bool has_error;
  {
    write_blob(r);
    if :: r != 0 -> goto done :: else fi;
    atomic {
      if
      :: ready == BLOBS
      :: HAS(over & ~ready, BLOBS) -> outcome = FAILED; SAY(0, agree, the communicator failed)
      fi
    };
    if :: outcome != 0 -> goto decided :: else fi;
    atomic {
      if
      :: HAS_ALL(fs.now, BLOBS) -> SAY(0, check blobs, blobs there)
      :: else -> outcome = FAILED; SAY(0, check blobs, a blob is missing)
      fi
    };
    if :: outcome != 0 -> goto decided :: else fi;
    atomic {
      create(INDEX | MARKER);
      fs.whole = fs.whole | INDEX | MARKER;
      sync_content(INDEX | MARKER);
      SAY(0, write index, index and unpublished marker written and synced)
    };
    atomic { sync_names(INDEX | MARKER); SAY(0, write index, directory synced) };
    atomic { publish_marker() };
    if
    :: has_error ->
       atomic { read_back(0) };
       if
       :: has_error && outcome == 0 ->
          atomic { remove(MARKER); SAY(0, publish, unpublished marker removed) };
          atomic { read_back(FAILED) }
       :: else
       fi
    :: else
    fi;
    if :: outcome != 0 -> goto decided :: else fi;
    atomic {
      if
      :: sync_names(COMMIT); outcome = COMMITTED; SAY(0, publish, directory synced)
      :: FAULT; outcome = UNKNOWN; SAY(0, publish, directory sync fails)
      fi
    };
  decided:
    atomic {
      if
      :: outcome == FAILED -> remove(BLOB(0) | INDEX | MARKER); SAY(0, verdict, reported failed and own files removed)
      :: outcome == COMMITTED -> remove(MARKER); SAY(0, verdict, reported committed)
      :: outcome == UNKNOWN -> SAY(0, verdict, reported unknown)
      fi;
      reported = outcome
    };
  done:
    atomic { outcome = 0; has_error = false; over = over | BLOB(r); left++ }
  } unless { atomic { HAS(over, BLOB(r)) -> outcome = 0; has_error = false; left++ } }
}

// --- Series::RemoveUncommitted.

inline scan(c) {
  if
  :: HAS(fs.now, COMMIT) && BUT(committed_cleaned_up) -> is_over = true; SAY_AS(cleaner, clean up 1, marker found)
  :: HAS(fs.now, COMMIT) && MUTANT(committed_cleaned_up) -> was_void = true; SAY_AS(cleaner, clean up 1, marker not asked for)
  :: HAS(fs.now, VOID_COMMIT) ->
     // Only who knows that no writer of the attempt is alive comes a second time.
     was_void = true;
     is_over = over != BLOBS && !EXCLUDED(writer_alive);
     SAY_AS(cleaner, clean up 1, void marker found)
  :: !NAME_IS_TAKEN -> SAY_AS(cleaner, clean up 1, no marker found)
  fi
}

inline void_replaces() {
  fs.now = fs.now & ~COMMIT;
  fs.surely = fs.surely & ~COMMIT
}

inline publish_void(c) {
  if
  :: NAME_IS_TAKEN && BUT(void_replaces) ->
     is_over = BUT(taken_name_ignored);
     SAY_AS(cleaner, clean up 1, the name is taken)
  :: NAME_IS_TAKEN && MUTANT(void_replaces) -> void_replaces(); create(VOID_COMMIT);
     SAY_AS(cleaner, clean up 1, void marker published over another)
  :: !NAME_IS_TAKEN -> create(VOID_COMMIT); SAY_AS(cleaner, clean up 1, void marker published)
  :: !NAME_IS_TAKEN && FAULT; is_over = BUT(void_error_ignored); SAY_AS(cleaner, clean up 1, the publication of the void marker fails)
  fi
}

inline sync_void() {
  if
  :: sync_names(VOID_COMMIT); SAY_AS(cleaner, clean up 1, directory synced)
  :: FAULT; is_over = true; SAY_AS(cleaner, clean up 1, directory sync fails)
  fi
}

inline voided(c) {
  atomic { publish_void(c) };
  if :: !is_over -> atomic { sync_void() } :: else fi
}

proctype cleaner(byte c) {
  byte listed;
  bool is_over, was_void;
  {
    // In the small search the second clean-up begins after the first.
    if
    :: c == 1 && !has_restarts -> is_first_over
    :: else
    fi;
    atomic { scan(c) };
    if :: is_over -> goto done :: else fi;
    if
    :: !was_void && BUT(no_void_marker) && BUT(void_marker_last) -> voided(c)
    :: else
    fi;
    if :: is_over -> goto done :: else fi;
    atomic { listed = fs.now & OURS; SAY_AS(cleaner, clean up 2, directory listed) };
    atomic { remove(listed); SAY_AS(cleaner, clean up 2, the listed files removed) };
    atomic { sync_names(listed); listed = 0; SAY_AS(cleaner, clean up 2, directory synced) };
    if
    :: !was_void && MUTANT(void_marker_last) -> voided(c)
    :: else
    fi;
    if
    :: was_void || MUTANT(void_removed_at_once) ->
       atomic { is_over = (fs.now & OURS) != 0; SAY_AS(cleaner, clean up 3, directory listed) };
       if :: is_over -> goto done :: else fi;
       atomic { remove(VOID_COMMIT | COMMIT); SAY_AS(cleaner, clean up 3, the marker removed) };
       atomic { sync_names(VOID_COMMIT | COMMIT); SAY_AS(cleaner, clean up 3, directory synced) }
    :: else
    fi;
  done:
    atomic { is_over = false; was_void = false; listed = 0; is_first_over = true; left++ }
  } unless { atomic { has_crashed && c < 2 -> is_over = false; was_void = false; listed = 0; left++ } }
}

// --- What may happen at any time, and what must hold.

inline look() {
  if
  :: HAS(fs.now, COMMIT) && !(HAS_ALL(fs.now & fs.whole, BLOBS | INDEX)) ->
     SAY_AS(reader, -, sees the marker without its files); assert(false)
  :: HAS(fs.maybe, COMMIT) && !(HAS_ALL(fs.surely & fs.synced, BLOBS | INDEX)) ->
     SAY_AS(crash, -, keeps the marker and loses its files); assert(false)
  :: reported == COMMITTED && !HAS(fs.surely, COMMIT) ->
     SAY_AS(crash, -, loses the marker of a commit that was reported); assert(false)
  :: reported == FAILED && HAS(fs.maybe, COMMIT) ->
     SAY_AS(crash, -, keeps the marker of a commit that was reported failed); assert(false)
  :: else
  fi
}

// What is left of the names; content needs no choice, for nobody leaves content unsynced here.
inline crash() {
  file = 1;
  do
  :: file < (VOID_COMMIT << 1) ->
     if
     :: HAS(fs.surely, file) -> fs.now = fs.now | file
     :: HAS(fs.maybe & ~fs.surely, file) && (file != VOID_COMMIT || !HAS(fs.now, COMMIT)) -> fs.now = fs.now | file
     :: !HAS(fs.surely, file) -> fs.now = fs.now & ~file
     fi;
     file = file << 1
  :: else -> break
  od;
  file = 0;
  fs.surely = fs.now;
  fs.maybe = fs.now;
  fs.whole = fs.whole & fs.now;
  fs.synced = fs.synced & fs.now;
  fs.stale = 0;
  over = BLOBS;
  ready = 0;
  is_delayed = false;
  has_crashed = true;
  SAY_AS(crash, -, every machine stops)
}

proctype fate() {
  byte file, r;
end:
  do
  :: atomic { has_crashes -> look() }
  :: atomic { has_restarts && !has_crashed -> crash() }
  :: atomic { has_crashed && left == N + 2 -> left = 0; run cleaner(2) }
  :: atomic {
       is_delayed -> is_delayed = false;
       if
       :: HAS(fs.now, MARKER) && !NAME_IS_TAKEN -> create(COMMIT); SAY(0, publish, it takes effect late)
       :: else
       fi
     }
  :: atomic {
       !has_crashed && FAULT;
       select(r : 0 .. (N - 1));
       over = over | BLOB(r);
       SAY(r, -, process dies);
       r = 0
     }
  od
}

init {
  atomic {
    byte r;
    read_environment();
    run fate();
    for (r : 0 .. (N - 1)) { run rank(r) }
    r = 0;
    run cleaner(0);
    run cleaner(1)
  }
}
