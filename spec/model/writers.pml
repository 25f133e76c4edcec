// SPDX-License-Identifier: Apache-2.0
// N attempts in one directory at the same time, each of one rank. spec/commit.md sections 1 and 2.1; lib/writer.
// README.md says what is modelled, under which axioms, and how steps are named.

// quick: N=2 FAULTS=2
// full: N=2 FAULTS=3
// full: N=3 FAULTS=2
// unreached: the name of the blob is taken; blobs have ids of their own
// unreached: the name of the unpublished marker is taken; who has the index has the marker

#ifndef N
#define N 2
#endif
#define SET short
#define ACTOR attempt

// Protective steps that a run may leave out: name, number, what is done instead.
#define M_replacing_rename 1  // the marker is published by a rename that replaces
#define M_exists_is_success 2  // "exists" is taken for the lost reply to an own publication
#define M_exists_is_failure 3  // "exists" is believed and not read back
#define M_any_marker_is_own 4  // the marker that is read back is not compared
#define M_removed_by_listing 5  // after a failure every file with a name of the format is removed
#define M_found_file_removed 6  // a file that was found under an own name is taken for an own file
#define M_created_over_a_file 7  // files are created over what has the name

// What an axiom excludes, shown to be needed: name, number, what happens then.
#define E_id_used_again 8  // a request to publish is still under way when another attempt with the same id begins

#include "steps.pml"
#include "files.pml"

// Files, as bits: of attempt a its blob, index and unpublished marker; COMMIT. Two attempts may have drawn the same
// id: then index and marker have the same names. The ids of blobs are others.
#define SLOT(a) ((a) * !has_equal_ids)
#define BLOB(a) (1 << (a))
#define INDEX(a) ((1 << N) << SLOT(a))
#define MARKER(a) ((1 << (2 * N)) << SLOT(a))
#define COMMIT (1 << (3 * N))
#define ALL (COMMIT - 1)

bool has_equal_ids;
byte index_of[N], marker_of[N];  // by slot: whose content, attempt + 1
byte holder;                     // whose marker COMMIT is: attempt + 1
byte dead, delayed;              // attempts: process died; request to publish still under way

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

// Creates exclusively (R-CMT-14), writes, syncs; one macro for the three kinds of file. What was created is own,
// whatever comes then.
#define WRITE(a, file, step, what)                                                        \
  if                                                                                      \
  :: HAS(fs.now, file) && BUT(created_over_a_file) ->                                     \
     outcome = FAILED;                                                                    \
     own = own | (MUTANT(found_file_removed) * (file));                                   \
     SAY(a, step, the name of the what is taken)                                          \
  :: !HAS(fs.now, file) || MUTANT(created_over_a_file) ->                                 \
     create(file);                                                                        \
     own = own | (file);                                                                  \
     if                                                                                   \
     :: fs.whole = fs.whole | (file); sync_content(file); SAY(a, step, what written and synced) \
     :: FAULT; outcome = FAILED; SAY(a, step, writing or syncing the what fails)          \
     fi                                                                                   \
  fi

inline write_blob(a) { WRITE(a, BLOB(a), write blobs, blob) }

inline write_index(a) {
  WRITE(a, INDEX(a), write index, index);
  index_of[SLOT(a)] = (outcome == 0) * (a + 1) + (outcome != 0) * index_of[SLOT(a)]
}

inline write_marker(a) {
  WRITE(a, MARKER(a), write index, unpublished marker);
  marker_of[SLOT(a)] = (outcome == 0) * (a + 1) + (outcome != 0) * marker_of[SLOT(a)]
}

inline sync_before(a) {
  if
  :: sync_names(own); SAY(a, write index, directory synced)
  :: FAULT; outcome = FAILED; SAY(a, write index, directory sync fails)
  fi
}

inline sync_after(a) {
  if
  :: sync_names(own | COMMIT); outcome = COMMITTED; SAY(a, publish, directory synced)
  :: FAULT; outcome = UNKNOWN; SAY(a, publish, directory sync fails)
  fi
}

inline take_name(a) {
  create(COMMIT);
  holder = marker_of[SLOT(a)]
}

inline publish_marker(a) {
  if
  :: !HAS(fs.now, COMMIT) || MUTANT(replacing_rename) -> take_name(a); SAY(a, publish, published)
  :: HAS(fs.now, COMMIT) && BUT(replacing_rename) ->
     has_error = BUT(exists_is_success);
     SAY(a, publish, the name is taken)
  :: !HAS(fs.now, COMMIT) && FAULT; has_error = true; take_name(a);
     SAY(a, publish, published and repeated by the network; the answer is that the name is taken)
  :: (!has_equal_ids || EXCLUDED(id_used_again)) && FAULT; has_error = true; delayed = delayed | BLOB(a); SAY(a, publish, the publication fails)
  fi
}

// The table of spec/commit.md section 2.1. nothing: what no marker there means.
inline read_back(a, nothing) {
  if
  :: MUTANT(exists_is_failure) -> outcome = FAILED; SAY(a, publish, not read back)
  :: BUT(exists_is_failure) && HAS(fs.now, COMMIT) && (holder == a + 1 || MUTANT(any_marker_is_own)) ->
     has_error = false; SAY(a, publish, own marker seen)
  :: BUT(exists_is_failure) && HAS(fs.now, COMMIT) && holder != a + 1 && BUT(any_marker_is_own) ->
     outcome = FAILED; SAY(a, publish, another marker seen)
  :: BUT(exists_is_failure) && !HAS(fs.now, COMMIT) -> outcome = nothing; SAY(a, publish, no marker seen)
  :: FAULT; outcome = UNKNOWN; SAY(a, publish, marker unreadable)
  fi
}

inline remove_unpublished(a) {
  if
  :: remove(MARKER(a)); SAY(a, publish, unpublished marker removed)
  :: FAULT; outcome = UNKNOWN; SAY(a, publish, the removal fails)
  fi
}

proctype attempt(byte a) {
  short own;  // files that this process created
  byte outcome;
  bool has_error;
  {
    atomic {
      if
      :: HAS(fs.now, COMMIT) -> outcome = FAILED; SAY(a, preflight, marker found)
      :: !HAS(fs.now, COMMIT) -> SAY(a, preflight, no marker found)
      fi
    };
    if :: outcome != 0 -> goto done :: else fi;
    atomic { write_blob(a) };
    if :: outcome != 0 -> goto clean_up :: else fi;
    atomic { write_index(a) };
    if :: outcome != 0 -> goto clean_up :: else fi;
    atomic { write_marker(a) };
    if :: outcome != 0 -> goto clean_up :: else fi;
    atomic { sync_before(a) };
    if :: outcome != 0 -> goto clean_up :: else fi;
    atomic { publish_marker(a) };
    if
    :: has_error ->
       atomic { read_back(a, 0) };
       if :: outcome != 0 -> goto clean_up :: else fi;
       if
       :: has_error ->
          atomic { remove_unpublished(a) };
          if :: outcome != 0 -> goto clean_up :: else fi;
          atomic { read_back(a, FAILED) };
          if :: outcome != 0 -> goto clean_up :: else fi
       :: else
       fi
    :: else
    fi;
    atomic { sync_after(a) };
    if
    :: outcome == COMMITTED -> atomic { remove(MARKER(a)); SAY(a, publish, unpublished marker removed) }
    :: else
    fi;

  clean_up:
    if
    :: outcome == FAILED && BUT(removed_by_listing) -> atomic { remove(own); SAY(a, verdict, own files removed) }
    :: outcome == FAILED && MUTANT(removed_by_listing) -> atomic { remove(ALL); SAY(a, verdict, all files removed) }
    :: else
    fi;
  done:
    atomic { tell(a, outcome) }
  } unless { HAS(dead, BLOB(a)) }
}

// What the marker pins, whole and there.
#define IS_THERE(names, a) \
  (HAS_ALL(names, BLOB(a) | INDEX(a)) && index_of[SLOT(a)] == a + 1)

// A reader opens the directory now, or after a crash that left any subset of what is not durable.
inline look() {
  a = 0;
  do
  :: a < N ->
     if
     :: reported[a] == COMMITTED && !(HAS(fs.surely, COMMIT) && holder == a + 1) ->
        SAY(a, -, was reported committed and its marker is not there); assert(false)
     :: reported[a] == FAILED && HAS(fs.maybe, COMMIT) && holder == a + 1 ->
        SAY(a, -, was reported failed and its marker is there); assert(false)
     :: HAS(fs.now, COMMIT) && holder == a + 1 && !IS_THERE(fs.now & fs.whole, a) ->
        SAY_AS(reader, -, sees a marker without its files); assert(false)
     :: HAS(fs.maybe, COMMIT) && holder == a + 1 && !IS_THERE(fs.surely & fs.synced, a) ->
        SAY_AS(crash, -, keeps a marker and loses its files); assert(false)
     :: else
     fi;
     a++
  :: else -> break
  od;
  assert(winners <= 1);
  a = 0
}

// Where nothing goes wrong, exactly one attempt wins.
#define ALL_REPORTED (reported[0] != 0 && reported[1] != 0 && reported[N - 1] != 0)

proctype fate() {
  byte a;
end:
  do
  :: atomic { has_crashes -> look(); assert(!ALL_REPORTED || faults != 0 || winners == 1) }
  :: atomic {
       delayed != 0 ->
       select(a : 0 .. (N - 1));
       if
       :: HAS(delayed, BLOB(a)) && HAS(fs.now, MARKER(a)) && !HAS(fs.now, COMMIT) ->
          take_name(a); SAY(a, publish, the publication takes effect late)
       :: else
       fi;
       delayed = delayed & ~BLOB(a);
       a = 0
     }
  :: atomic {
       FAULT;
       select(a : 0 .. (N - 1));
       if
       :: HAS(dead, BLOB(a)) || reported[a] != 0
       :: else -> dead = dead | BLOB(a); SAY(a, -, process dies)
       fi;
       a = 0
     }
  od
}

init {
  atomic {
    byte a;
    read_environment();
    if
    :: has_equal_ids = false
    :: has_equal_ids = true
    fi;
    for (a : 0 .. (N - 1)) { run attempt(a) }
    a = 0;
    run fate()
  }
}
