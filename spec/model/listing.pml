// SPDX-License-Identifier: Apache-2.0
// Listing of a series in which others work: N processes that save a checkpoint each, behind one that may be there from
// the beginning; one that deletes and one that cleans up, again and again; and one that lists and resumes.
// spec/series.md sections 2.1 and 3; lib/series/series_scan.cc, lib/series/series.cc. README.md says what is modelled,
// under which axioms, and how steps are named.

// quick: N=2 FAULTS=1
// full: N=3 FAULTS=0

#ifndef N
#define N 2
#endif
#define ACTOR saver

// Protective steps that a run may leave out: name, number, what is done instead.
#define M_no_second_look 1  // what had no marker is not looked at again
#define M_names_listed_once 2  // the names are not listed again
#define M_names_before_second_look 3  // the names are listed again before the second look, not after it
#define M_error_is_absence 4  // a marker that cannot be read is taken for absent
#define M_not_confirmed 5  // "does not exist" is believed without a listing of the directory
#define M_damage_believed 6  // what is missing behind a marker is damage, whether or not the marker is still there
#define M_newest_deleted 7  // nobody asks for a newer checkpoint before a deletion

// What an axiom excludes, shown to be needed: name, number, what happens then.
#define E_fork_deleted 8  // a branch of a fork is deleted

#include "steps.pml"

#define HAS(set, bits) (((set) & (bits)) != 0)
#define HAS_ALL(set, bits) (((set) & (bits)) == (bits))

// Directories: 0 has the checkpoint that may be there from the beginning, p + 1 is that of saver p. Each is made once,
// gets a marker once at most, and loses it once at most.
#define BIT(d) (1 << (d))
#define MINE BIT(p + 1)
#define NONE 4  // as if it were a directory: no checkpoint
byte dirs;        // that are there
byte committed;   // with a marker
byte voided;      // with a void marker
byte emptied;     // whose files a deletion has removed
byte over = 1;    // whose writer has ended
byte sequence[NONE + 1], parent[NONE];

byte newest = NONE;
bool had_one;
byte was;          // what was the newest since the call of the lister began, as bits; 0: it has not begun
bool has_changed;  // something, since the listing began

#define IS_NEWER(a, b) (sequence[a] > sequence[b] || (sequence[a] == sequence[b] && (b) != NONE && (a) > (b)))

// One step with any member of a set.
#define WITH_ANY(set, step)                 \
  :: d_step { HAS(set, BIT(0)) -> step(0) } \
  :: d_step { HAS(set, BIT(1)) -> step(1) } \
  :: d_step { HAS(set, BIT(2)) -> step(2) } \
  :: d_step { HAS(set, BIT(3)) -> step(3) }

inline note_newest(i) {
  newest = NONE;
  for (i : 0 .. N) {
    if
    :: HAS(committed, BIT(i)) && IS_NEWER(i, newest) -> newest = i
    :: else
    fi
  }
  i = 0;
  was = was | ((was != 0) * BIT(newest));
  has_changed = true
}

// Its preflight is one step, at the moment for which the listing in it is right: that every listing is right for some
// moment is what is shown of the lister.
proctype saver(byte p) {
  byte i;
  d_step {
    parent[p + 1] = newest;
    sequence[p + 1] = sequence[newest] + 1;
    if
    :: newest == NONE -> SAY(p, preflight, no parent)
    :: newest != NONE -> SAY_OF(p, preflight, the parent is %d, newest)
    fi
  };
  d_step { dirs = dirs | MINE; has_changed = true; SAY_OF(p, preflight, directory %d made, p + 1) };
  atomic {
    if
    :: d_step {
         !HAS(voided, MINE) -> committed = committed | MINE; had_one = true; note_newest(i);
         SAY(p, publish, published)
       }
    :: HAS(voided, MINE) -> SAY(p, publish, void marker found)
    :: SAY(p, -, process dies)
    fi;
    over = over | MINE
  }
}

// --- The lister.

#define HAS_MARKER(d) HAS(committed | voided, BIT(d))
#define IS_WHOLE(d) HAS(dirs & ~emptied, BIT(d))

inline list_names() {
  was = was | ((was == 0) * BIT(newest));
  has_changed = false;
  names = dirs;
  left = dirs;
  SAY_AS(lister, list 1, names listed)
}

inline look_at(d) {
  left = left & ~BIT(d);
  if
  :: HAS(committed, BIT(d)) ->
     found = (IS_NEWER(d, found) -> d : found); SAY_AS_OF(lister, list 1, marker of %d seen, d)
  :: HAS(voided, BIT(d)) -> SAY_AS_OF(lister, list 1, void marker of %d seen, d)
  :: HAS(dirs, BIT(d)) && !HAS_MARKER(d) -> bare = bare | BIT(d); SAY_AS_OF(lister, list 1, no marker in %d, d)
  :: !HAS(dirs, BIT(d)) -> is_again = true; SAY_AS_OF(lister, list 1, directory %d has vanished, d)
  fi
}

// What the storage fails to give, it does not give during the whole listing.
inline fail_to_read(d) {
  faults++;
  left = left & ~BIT(d);
  if
  :: MUTANT(error_is_absence) ->
     bare = bare | BIT(d); kept_back = BIT(d);
     SAY_AS_OF(lister, list 1, marker of %d unreadable and taken for absent, d)
  :: BUT(error_is_absence) -> is_over = true; SAY_AS_OF(lister, list 1, marker of %d unreadable, d)
  fi
}

inline be_told_of_none(d) {
  faults++;
  left = left & ~BIT(d);
  if
  :: MUTANT(not_confirmed) ->
     bare = bare | BIT(d); kept_back = BIT(d); SAY_AS_OF(lister, list 1, marker of %d said not to exist, d)
  :: BUT(not_confirmed) ->
     is_again = true; is_told_of_none = true; SAY_AS_OF(lister, list 1, marker of %d said not to exist and listed, d)
  fi
}

inline look_again_at(d) {
  left = left & ~BIT(d);
  if
  :: HAS_MARKER(d) && !HAS(kept_back, BIT(d)) -> is_again = true; SAY_AS_OF(lister, list 2, now %d has a marker, d)
  :: HAS_MARKER(d) && HAS(kept_back, BIT(d)) -> SAY_AS_OF(lister, list 2, still no marker in %d, d)
  :: HAS(dirs, BIT(d)) && !HAS_MARKER(d) -> SAY_AS_OF(lister, list 2, still no marker in %d, d)
  :: !HAS(dirs, BIT(d)) -> is_again = true; SAY_AS_OF(lister, list 2, directory %d has vanished, d)
  fi
}

inline list_names_again() {
  if
  :: names == dirs -> SAY_AS(lister, list 3, the same names)
  :: names != dirs -> is_again = true; SAY_AS(lister, list 3, other names)
  fi
}

inline answer() {
  if
  :: HAS(was, BIT(found)) && found == NONE -> SAY_AS(lister, list 3, there is no checkpoint)
  :: HAS(was, BIT(found)) && found != NONE -> SAY_AS_OF(lister, list 3, the newest is %d, found)
  :: !HAS(was, BIT(found)) && found == NONE ->
     SAY_AS(lister, -, finds no checkpoint though there was one all the time); assert(false)
  :: !HAS(was, BIT(found)) && found != NONE ->
     SAY_AS(lister, -, finds a checkpoint that was not the newest at any time); assert(false)
  fi
}

// What is missing is damage only behind a marker that is still there.
inline open_newest() {
  if
  :: IS_WHOLE(found) -> SAY_AS_OF(lister, resume 2, %d is whole, found)
  :: !IS_WHOLE(found) && BUT(damage_believed) && !HAS(committed, BIT(found)) ->
     is_again = true; SAY_AS_OF(lister, resume 2, files of %d are missing and its marker is gone, found)
  :: !IS_WHOLE(found) && (MUTANT(damage_believed) || HAS(committed, BIT(found))) ->
     SAY_AS(lister, -, reports damage where there is none); assert(false)
  fi
}

// Begins again, or gives up: an error is no answer.
inline begin_again() {
  d_step {
    if
    :: !has_changed && !is_told_of_none -> SAY_AS(lister, -, begins again though nothing changed); assert(false)
    :: has_changed || is_told_of_none
    fi;
    is_again = false;
    is_told_of_none = false;
    found = NONE;
    bare = 0;
    left = 0
  };
  if
  :: true
  :: is_over = true; SAY_AS(lister, list 3, begun again too often)
  fi
}

#define MAY_FAIL ((left & (committed | voided)) * (faults < faults_max))

proctype lister() {
  byte names, left, bare, kept_back, found = NONE;
  bool is_again, is_over, is_told_of_none;
again:
  atomic { list_names() };
  do
  WITH_ANY(left * !is_again * !is_over, look_at)
  WITH_ANY(MAY_FAIL * !is_again * !is_over, fail_to_read)
  WITH_ANY(MAY_FAIL * !is_again * !is_over, be_told_of_none)
  :: left == 0 || is_again || is_over -> break
  od;
  if :: is_over -> goto done :: else fi;
  atomic {
    if
    :: MUTANT(names_before_second_look) && !is_again -> d_step { list_names_again() }
    :: BUT(names_before_second_look) || is_again
    fi;
    left = bare * BUT(no_second_look)
  };
  do
  WITH_ANY(left * !is_again, look_again_at)
  :: left == 0 || is_again -> break
  od;
  atomic {
    if
    :: !is_again && BUT(names_listed_once) && BUT(names_before_second_look) -> list_names_again()
    :: is_again || MUTANT(names_listed_once) || MUTANT(names_before_second_look)
    fi;
    if
    :: !is_again -> answer()
    :: else
    fi
  };
  if
  :: !is_again && found != NONE -> d_step { open_newest() }
  :: else
  fi;
  if
  :: is_again ->
     atomic { begin_again() };
     if :: is_over :: else -> goto again fi
  :: else
  fi;
done:
  atomic { was = 0; has_changed = false; names = 0; left = 0; bare = 0; kept_back = 0; found = NONE; is_over = false }
}

// --- The others.

// R-SER-15: who prunes stops there.
#define ARE_SIBLINGS(a, b) (HAS_ALL(committed, BIT(a) | BIT(b)) && parent[a] == parent[b])
#define IS_FORKED                                                                          \
  (ARE_SIBLINGS(0, 1) || ARE_SIBLINGS(0, 2) || ARE_SIBLINGS(0, 3) || ARE_SIBLINGS(1, 2) || \
   ARE_SIBLINGS(1, 3) || ARE_SIBLINGS(2, 3))

inline ask_for_newer(k) {
  if
  :: k == newest && BUT(newest_deleted) -> SAY_AS(deleter, delete 1, refused)
  :: k != newest && IS_FORKED && !EXCLUDED(fork_deleted) -> SAY_AS(deleter, delete 1, refused at a fork)
  :: k != newest && (!IS_FORKED || EXCLUDED(fork_deleted)) ->
     d = k; SAY_AS_OF(deleter, delete 1, one is newer than %d, k)
  :: k == newest && MUTANT(newest_deleted) -> d = k; SAY_AS_OF(deleter, delete 1, nothing asked before %d goes, k)
  fi
}

inline remove_marker() {
  committed = committed & ~BIT(d);
  note_newest(i);
  SAY_AS_OF(deleter, delete 2, marker of %d removed, d)
}

inline remove_files() {
  emptied = emptied | BIT(d);
  SAY_AS_OF(deleter, delete 3, files of %d removed, d)
}

inline remove_directory() {
  if
  :: !HAS(voided, BIT(d)) ->
     dirs = dirs & ~BIT(d); emptied = emptied & ~BIT(d); has_changed = true;
     SAY_AS_OF(deleter, delete 4, directory %d removed, d)
  :: HAS(voided, BIT(d)) -> SAY_AS_OF(deleter, delete 4, directory %d is not empty, d)
  fi
}

// It may stop for good after each step; then another begins.
proctype deleter() {
  byte d = NONE, i;
end:
  do
  WITH_ANY(committed * (d == NONE), ask_for_newer)
  :: d != NONE ->
     d_step { remove_marker() };
     if
     :: d = NONE
     :: d_step { true -> remove_files() };
        if
        :: d = NONE
        :: d_step { true -> remove_directory(); d = NONE }
        fi
     fi
  od
}

inline publish_void(k) {
  voided = voided | BIT(k);
  has_changed = true;
  d = k;
  SAY_AS_OF(cleaner, clean up 1, void marker published in %d, k)
}

// Of one attempt, or of what a deletion has left.
proctype cleaner() {
  byte d;
end:
  if
  WITH_ANY(dirs & ~committed, publish_void)
  fi;
end_alive:
  d_step {
    HAS(over, BIT(d)) -> voided = 0; has_changed = true; SAY_AS_OF(cleaner, clean up 3, void marker of %d removed, d)
  };
  d_step {
    dirs = dirs & ~BIT(d); emptied = emptied & ~BIT(d); has_changed = true;
    SAY_AS_OF(cleaner, clean up 3, directory %d removed, d); d = 0
  }
}

proctype fate() {
end:
  do
  :: atomic {
       has_crashes ->
       if
       :: had_one && newest == NONE -> SAY_AS(reader, -, finds that no checkpoint is left); assert(false)
       :: else
       fi
     }
  od
}

init {
  atomic {
    byte p;
    read_environment();
    if
    :: true
    :: dirs = BIT(0); committed = BIT(0); sequence[0] = 1; parent[0] = NONE; newest = 0; had_one = true
    fi;
    run fate();
    for (p : 0 .. (N - 1)) { run saver(p) }
    p = 0;
    run lister();
    run deleter();
    if
    :: N < 3 -> run cleaner()
    :: N >= 3
    fi
  }
}
