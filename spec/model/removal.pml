// SPDX-License-Identifier: Apache-2.0
// Deletion of old checkpoints of a series while a newer one is being committed; a crash in between and another deletion
// after it. N checkpoints: the last is being committed, of each other one a process of its own may get rid.
// spec/series.md section 4; lib/series/series_remove.cc. README.md says what is modelled, under which axioms, and how
// steps are named.

// quick: N=2 FAULTS=1 RESTARTS=1
// full: N=3 FAULTS=1 RESTARTS=1

#ifndef N
#define N 2
#endif
#define ACTOR deleter

// Protective steps that a run may leave out: name, number, what is done instead.
#define M_files_before_marker 1  // the files are removed before the marker
#define M_removal_not_synced 2  // the removal of the marker is not synced before the rest goes
#define M_removal_sync_error_ignored 3  // deletion goes on although that sync failed
#define M_newer_not_synced 4  // the directory of the newer checkpoint is not synced by who deletes
#define M_newer_not_checked 5  // the newer checkpoint is not checked for its files
#define M_newest_deleted 6  // nobody asks for a newer checkpoint

// What an axiom excludes, shown to be needed: name, number, what happens then.
#define E_sync_covers_own_names 7  // a sync of a directory covers only the names that the same process made
#define E_failed_sync_spoils_names 8  // after a failed sync of a directory that of another process does nothing

#include "steps.pml"
#include "files.pml"

// Two bits for each checkpoint: its marker, and all the files it pins. File contents are durable.
#define MARKER(k) (1 << (2 * (k)))
#define PINNED(k) (2 << (2 * (k)))
#define ALL(k) (MARKER(k) | PINNED(k))
#define NEWEST (N - 1)

bool has_crashed;
byte damaged;  // checkpoints, by the bit of the marker: files were lost long ago

// The committer of the newest one, from "publish" on.
proctype committer() {
  {
    atomic { create(MARKER(NEWEST)); SAY_AS(committer, publish, published) };
    atomic {
      if
      :: sync_names(MARKER(NEWEST)); SAY_AS(committer, publish, directory synced)
      :: FAULT;
         if
         :: EXCLUDED(failed_sync_spoils_names) -> spoil_names(MARKER(NEWEST))
         :: !EXCLUDED(failed_sync_spoils_names)
         fi;
         SAY_AS(committer, publish, directory sync fails)
      fi
    }
  } unless { has_crashed }
}

inline ask_for_newer() {
  newer = NEWEST;
  do
  :: newer > k && HAS(fs.now, MARKER(newer)) && (HAS(fs.now, PINNED(newer)) || MUTANT(newer_not_checked)) -> break
  :: newer > k && !(HAS(fs.now, MARKER(newer)) && (HAS(fs.now, PINNED(newer)) || MUTANT(newer_not_checked))) -> newer--
  :: newer == k -> break
  od;
  is_over = newer == k && BUT(newest_deleted);
  if
  :: is_over -> SAY(k, delete 1, refused)
  :: !is_over -> SAY(k, delete 1, a newer one is whole)
  fi
}

inline sync_newer() {
  if
  :: MUTANT(newer_not_synced) || newer == k -> SAY(k, delete 1, newer one not synced)
  :: BUT(newer_not_synced) && !EXCLUDED(sync_covers_own_names) && newer != k ->
     sync_names(ALL(newer)); SAY(k, delete 1, newer one synced)
  :: EXCLUDED(sync_covers_own_names) -> SAY(k, delete 1, newer one synced but not its names)
  :: FAULT; spoil_names(ALL(newer)); is_over = true; SAY(k, delete 1, sync of the newer one fails)
  fi
}

inline sync_removal() {
  if
  :: MUTANT(removal_not_synced) -> SAY(k, delete 2, not synced)
  :: BUT(removal_not_synced) -> sync_names(MARKER(k)); SAY(k, delete 2, directory synced)
  :: FAULT; spoil_names(MARKER(k)); is_over = BUT(removal_sync_error_ignored);
     SAY(k, delete 2, directory sync fails)
  fi
}

proctype deleter(byte k; bool is_second) {
  byte newer;
  bool is_over;
  {
    if
    :: is_second -> end: has_crashed
    :: else
    fi;
    if
    :: HAS(fs.now, MARKER(k))
    :: else -> goto done
    fi;
    atomic { ask_for_newer() };
    if :: is_over -> goto done :: else fi;
    atomic { sync_newer() };
    if :: is_over -> goto done :: else fi;
    if
    :: MUTANT(files_before_marker) -> atomic { remove(PINNED(k)); SAY(k, delete 3, files removed) }
    :: BUT(files_before_marker)
    fi;
    atomic { remove(MARKER(k)); SAY(k, delete 2, marker removed) };
    atomic { sync_removal() };
    if :: is_over -> goto done :: else fi;
    atomic { remove(PINNED(k)); SAY(k, delete 3, files removed) };
    atomic { sync_names(ALL(k)); SAY(k, delete 3, directory synced) };
  done:
    atomic { newer = 0; is_over = false }
  } unless { atomic { has_crashed && !is_second -> newer = 0; is_over = false } }
}

// --- What may happen at any time, and what must hold.

// As few as can be after a crash now: every marker that may go has gone.
#define IS_WHOLE(k) (HAS_ALL(fs.surely, ALL(k)))

inline look() {
  k = 0;
  do
  :: k < N ->
     if
     :: HAS(fs.now, MARKER(k)) && !HAS(fs.now, PINNED(k)) && !HAS(damaged, MARKER(k)) ->
        SAY_AS(reader, -, sees a marker without its files); assert(false)
     :: HAS(fs.maybe, MARKER(k)) && !HAS(fs.surely, PINNED(k)) && !HAS(damaged, MARKER(k)) ->
        SAY_AS(crash, -, keeps a marker and loses its files); assert(false)
     :: else
     fi;
     k++
  :: else -> break
  od;
  k = 0;
  // At the beginning there was one; at every time since one survives whatever the crash takes.
  if
  :: IS_WHOLE(0) || IS_WHOLE(1) || IS_WHOLE(N - 1)
  :: else -> SAY_AS(crash, -, may leave no checkpoint at all); assert(false)
  fi
}

inline crash() {
  do
  :: file < MARKER(N) ->
     if
     :: HAS(fs.surely, file) -> fs.now = fs.now | file
     :: HAS(fs.maybe & ~fs.surely, file) -> fs.now = fs.now | file
     :: !HAS(fs.surely, file) -> fs.now = fs.now & ~file
     fi;
     file = file << 1
  :: else -> break
  od;
  file = 1;
  fs.surely = fs.now;
  fs.maybe = fs.now;
  fs.stale = 0;
  has_crashed = true;
  SAY_AS(crash, -, every machine stops)
}

proctype fate() {
  byte k, file = 1;
end:
  do
  :: atomic { has_crashes -> look() }
  :: atomic { has_restarts && !has_crashed -> crash() }
  od
}

init {
  atomic {
    byte k;
    read_environment();
    for (k : 0 .. (N - 2)) { create(ALL(k)) }
    create(PINNED(NEWEST));
    sync_names(255);
    // Or the newest one is incomplete: somebody removed a file of it.
    if
    :: true
    :: remove(PINNED(NEWEST)); sync_names(255); damaged = MARKER(NEWEST)
    fi;
    run fate();
    run committer();
    for (k : 0 .. (N - 1)) { run deleter(k, false) }
    for (k : 0 .. (N - 2)) { run deleter(k, true) }  // after the crash
    k = 0
  }
}
