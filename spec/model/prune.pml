// SPDX-License-Identifier: Apache-2.0
// Two prunings of a series at once, while its newest checkpoint is being published and while one loses its files. N + 2
// checkpoints, of which the policy keeps the newest two. spec/series.md section 7, and section 4 for each deletion, which
// removal.pml looks at more closely; lib/series/series_prune.cc. README.md says what is modelled, under which axioms, and how
// steps are named.

// quick: N=2 FAULTS=1
// full: N=3 FAULTS=1

#ifndef N
#define N 2
#endif
#define ACTOR deleter

// Protective steps that a run may leave out: name, number, what is done instead.
#define M_keeps_one 1  // the policy keeps the newest one alone
#define M_damaged_counts 2  // a checkpoint counts though its files are not there
#define M_newest_not_synced 3  // the directory of the newest one is not synced before an older one goes

#include "steps.pml"
#define SET int
#include "files.pml"

// Two bits for each checkpoint: its marker, and all the files it pins. File contents are durable.
#define MARKER(k) (1 << (2 * (k)))
#define PINNED(k) (2 << (2 * (k)))
#define ALL(k) (MARKER(k) | PINNED(k))
#define COUNT (N + 2)
#define NEWEST (COUNT - 1)
#define EVERYTHING ((1 << (2 * COUNT)) - 1)

#define IS_WHOLE(k) (HAS_ALL(fs.now, ALL(k)))
#define COUNTS(k) (HAS(fs.now, MARKER(k)) && (HAS(fs.now, PINNED(k)) || MUTANT(damaged_counts)))

proctype committer() {
  atomic { create(MARKER(NEWEST)); SAY_AS(committer, publish, published) };
  atomic { sync_names(MARKER(NEWEST)); SAY_AS(committer, publish, directory synced) }
}

// From the newest to the oldest, until two are whole: those stay, and what lies between.
inline decide() {
  k = COUNT;
  do
  :: k > 0 && kept < 2 - MUTANT(keeps_one) ->
     k--;
     if
     :: COUNTS(k) ->
        kept++;
        if
        :: kept == 1 -> newest = k
        :: else
        fi
     :: else
     fi
  :: k == 0 || kept == 2 - MUTANT(keeps_one) -> break
  od;
  SAY(p, delete 1, decided)
}

inline sync_newest() {
  if
  :: MUTANT(newest_not_synced) -> SAY(p, delete 1, newest one not synced)
  :: BUT(newest_not_synced) -> sync_names(ALL(newest)); SAY(p, delete 1, newest one synced)
  fi
}

// What goes is older than what stays: the oldest first.
proctype pruner(byte p) {
  byte k, kept, newest, older;
  atomic { decide() };
  if
  :: kept < 2 - MUTANT(keeps_one) -> goto done  // all stay
  :: else
  fi;
  atomic { sync_newest() };
  do
  :: older < k && HAS(fs.now, MARKER(older)) ->
     atomic { remove(MARKER(older)); sync_names(MARKER(older)); SAY(p, delete 2, marker removed) };
     atomic { remove(PINNED(older)); sync_names(ALL(older)); SAY(p, delete 3, files removed) };
     older++
  :: older < k && !HAS(fs.now, MARKER(older)) -> older++
  :: older == k -> break
  od;
done:
  skip
}

#define SURVIVES(k) (HAS_ALL(fs.surely, ALL(k)))

inline look() {
  if
  :: SURVIVES(0) || SURVIVES(1) || SURVIVES(2) || SURVIVES(COUNT - 2) || SURVIVES(NEWEST)
  :: else -> SAY_AS(crash, -, may leave no checkpoint at all); assert(false)
  fi
}

// Files are lost of the newest that is whole, or of the one before.
proctype fate() {
end:
  do
  :: atomic { has_crashes -> look() }
  :: atomic { IS_WHOLE(NEWEST) && FAULT; remove(PINNED(NEWEST)); SAY_AS(disk, -, files of the newest are lost) }
  :: atomic { IS_WHOLE(NEWEST - 1) && FAULT; remove(PINNED(NEWEST - 1)); SAY_AS(disk, -, files of one are lost) }
  od
}

init {
  atomic {
    byte i;
    read_environment();
    for (i : 0 .. (COUNT - 2)) { create(ALL(i)) }
    create(PINNED(NEWEST));
    sync_names(EVERYTHING);
    // Or the newest one is incomplete: somebody removed a file of it.
    if
    :: true
    :: remove(PINNED(NEWEST)); sync_names(EVERYTHING)
    fi;
    run fate();
    run committer();
    run pruner(0);
    run pruner(1);
    i = 0
  }
}
