// SPDX-License-Identifier: Apache-2.0
// N attempts in one directory of an object store, and a clean-up. spec/commit.md sections 2.1 and 3.1; lib/storage,
// lib/writer. Nothing is forgotten: what was put is durable at once. README.md says how steps are named.

// quick: N=2 FAULTS=2
// full: N=2 FAULTS=4
// full: N=3 FAULTS=1

#ifndef N
#define N 2
#endif
#define ACTOR attempt

// Protective steps that a run may leave out: name, number, what is done instead.
#define M_not_read_back 1  // an error of the put is believed
#define M_not_settled 2  // no marker at the look is taken for the answer
#define M_settling_not_read_back 3  // an error of the put of the void marker is believed to say that it is there
#define M_index_after_marker 4  // the index is put after the marker
#define M_any_marker_is_own 5  // the marker that is read back is not compared
#define M_cleaned_without_void 6  // the clean-up removes files before it put a void marker

// What an axiom excludes, shown to be needed: name, number, what happens then.
#define E_condition_ignored 7  // the store takes a conditional put though the key is taken

#include "steps.pml"

#define BIT(a) (1 << (a))
#define HAS(set, a) (((set) & BIT(a)) != 0)

// Whose marker COMMIT is: an attempt + 1, or a void one.
#define FREE 0
#define VOID (N + 1)
byte holder;
byte blobs, indexes;         // of which attempts they are there
byte late_markers, late_voids;  // puts that are still under way
byte dead;

#define COMMITTED 1
#define FAILED 2
#define UNKNOWN 3
byte reported[N];
byte winners;

inline tell(a, result) {
  reported[a] = result;
  if
  :: result == COMMITTED -> winners++; SAY(a, verdict, reported committed)
  :: result == FAILED -> SAY(a, verdict, reported failed)
  :: result == UNKNOWN -> SAY(a, verdict, reported unknown)
  fi
}

inline put_index(a) {
  if
  :: indexes = indexes | BIT(a); SAY(a, write index, index put)
  :: FAULT; outcome = FAILED; SAY(a, write index, putting the index fails)
  fi
}

inline put_marker(a) {
  if
  :: holder == FREE -> holder = a + 1; SAY(a, publish, published)
  :: holder != FREE && EXCLUDED(condition_ignored) -> holder = a + 1; SAY(a, publish, published over another)
  :: holder != FREE && !EXCLUDED(condition_ignored) -> has_error = true; SAY(a, publish, the name is taken)
  :: holder == FREE && FAULT; has_error = true; holder = a + 1; SAY(a, publish, published and the reply is lost)
  :: FAULT; has_error = true; SAY(a, publish, the put fails)
  :: FAULT; has_error = true; late_markers = late_markers | BIT(a); SAY(a, publish, the put is late)
  fi
}

// `nothing`: what no marker there means.
inline read_back(a, nothing) {
  if
  :: MUTANT(not_read_back) -> outcome = FAILED; SAY(a, publish, not read back)
  :: BUT(not_read_back) && (holder == a + 1 || (holder != FREE && MUTANT(any_marker_is_own))) ->
     has_error = false; SAY(a, publish, own marker seen)
  :: BUT(not_read_back) && holder != FREE && holder != a + 1 && BUT(any_marker_is_own) ->
     outcome = FAILED; SAY(a, publish, another marker seen)
  :: BUT(not_read_back) && holder == FREE -> outcome = nothing; SAY(a, publish, no marker seen)
  :: BUT(not_read_back) && FAULT; outcome = UNKNOWN; SAY(a, publish, marker unreadable)
  fi
}

inline put_void(a) {
  if
  :: holder == FREE -> holder = VOID; outcome = FAILED; SAY(a, publish, void marker put)
  :: holder != FREE && MUTANT(settling_not_read_back) -> outcome = FAILED; SAY(a, publish, the void marker is refused)
  :: holder != FREE && BUT(settling_not_read_back) -> SAY(a, publish, the void marker is refused)
  :: holder == FREE && FAULT; holder = VOID; SAY(a, publish, void marker put and the reply is lost)
  :: FAULT; SAY(a, publish, the put of the void marker fails)
  :: FAULT; late_voids = late_voids | BIT(a); SAY(a, publish, the put of the void marker is late)
  fi;
  if
  :: MUTANT(settling_not_read_back) -> outcome = FAILED
  :: BUT(settling_not_read_back)
  fi
}

proctype attempt(byte a) {
  byte outcome;
  bool has_error;
  {
    atomic {
      if
      :: holder != FREE -> outcome = FAILED; SAY(a, preflight, marker found)
      :: holder == FREE -> SAY(a, preflight, no marker found)
      fi
    };
    if :: outcome != 0 -> goto done :: else fi;
    atomic {
      if
      :: blobs = blobs | BIT(a); SAY(a, write blobs, blob put)
      :: FAULT; outcome = FAILED; SAY(a, write blobs, putting the blob fails)
      fi
    };
    if :: outcome != 0 -> goto clean_up :: else fi;
    if
    :: BUT(index_after_marker) -> atomic { put_index(a) }
    :: MUTANT(index_after_marker)
    fi;
    if :: outcome != 0 -> goto clean_up :: else fi;
    atomic { put_marker(a) };
    if
    :: has_error ->
       atomic { read_back(a, 0) };
       if :: outcome != 0 -> goto clean_up :: else fi;
       if
       :: has_error && MUTANT(not_settled) -> outcome = FAILED; goto clean_up
       :: has_error && BUT(not_settled) ->
          atomic { put_void(a) };
          if :: outcome != 0 -> goto clean_up :: else fi;
          atomic { read_back(a, UNKNOWN) };
          if :: outcome != 0 -> goto clean_up :: else fi
       :: else
       fi
    :: else
    fi;
    if
    :: MUTANT(index_after_marker) -> atomic { put_index(a) }
    :: BUT(index_after_marker)
    fi;
    outcome = COMMITTED;

  clean_up:
    if
    :: outcome == FAILED ->
       atomic { indexes = indexes & ~BIT(a); blobs = blobs & ~BIT(a); SAY(a, verdict, own objects removed) }
    :: else
    fi;
  done:
    atomic { tell(a, outcome) }
  } unless { HAS(dead, a) }
}

// spec/series.md section 5, of a directory whose writers may be slow. An answer that is lost makes it stop.
proctype cleaner() {
  bool may_go_on;
  if
  :: true
  :: true ->
     atomic {
       if
       :: holder == FREE && BUT(cleaned_without_void) ->
          holder = VOID; may_go_on = true; SAY_AS(cleaner, clean up 1, void marker put)
       :: holder == FREE && MUTANT(cleaned_without_void) -> may_go_on = true; SAY_AS(cleaner, clean up 1, no marker found)
       :: holder != FREE -> SAY_AS(cleaner, clean up 1, the name is taken)
       fi
     };
     if
     :: may_go_on -> atomic { indexes = 0; blobs = 0; SAY_AS(cleaner, clean up 2, objects removed) }
     :: else
     fi
  fi
}

inline look() {
  a = 0;
  do
  :: a < N ->
     if
     :: reported[a] == COMMITTED && holder != a + 1 ->
        SAY(a, -, was reported committed and its marker is not there); assert(false)
     :: reported[a] == FAILED && holder == a + 1 ->
        SAY(a, -, was reported failed and its marker is there); assert(false)
     :: holder == a + 1 && !(HAS(blobs, a) && HAS(indexes, a)) ->
        SAY_AS(reader, -, sees a marker without its files); assert(false)
     :: else
     fi;
     a++
  :: else -> break
  od;
  assert(winners <= 1);
  a = 0
}

proctype fate() {
  byte a;
end:
  do
  :: atomic { has_crashes -> look() }
  :: atomic {
       late_markers != 0 ->
       select(a : 0 .. (N - 1));
       if
       :: HAS(late_markers, a) && holder == FREE -> holder = a + 1; SAY(a, publish, the late put takes effect)
       :: else
       fi;
       late_markers = late_markers & ~BIT(a);
       a = 0
     }
  :: atomic {
       late_voids != 0 ->
       select(a : 0 .. (N - 1));
       if
       :: HAS(late_voids, a) && holder == FREE -> holder = VOID; SAY(a, publish, the late void marker takes effect)
       :: else
       fi;
       late_voids = late_voids & ~BIT(a);
       a = 0
     }
  :: atomic {
       FAULT;
       select(a : 0 .. (N - 1));
       if
       :: HAS(dead, a) || reported[a] != 0
       :: else -> dead = dead | BIT(a); SAY(a, -, process dies)
       fi;
       a = 0
     }
  od
}

init {
  atomic {
    byte a;
    read_environment();
    for (a : 0 .. (N - 1)) { run attempt(a) }
    a = 0;
    run cleaner();
    run fate()
  }
}
