// SPDX-License-Identifier: Apache-2.0
#include "ranks.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { kRanksMax = 4 };

struct group {
  int size;
  pthread_mutex_t mutex;
  pthread_cond_t all_came;
  int came, round, is_interrupted, open_count, mistake, progress_count;
  int64_t deadline_ms;
  const char* broken;
  const void* slots[kRanksMax];  // what each rank brought to a call
  group* duplicate;
  group* parent;
};

typedef struct member {
  group* group;
  int rank;
} member;

group* group_create(int size) {
  group* made = (group*)calloc(1, sizeof(group));
  made->size = size;
  pthread_mutex_init(&made->mutex, NULL);
  pthread_cond_init(&made->all_came, NULL);
  return made;
}

void group_free(group* of) {
  if (of == NULL) return;
  group_free(of->duplicate);
  pthread_cond_destroy(&of->all_came);
  pthread_mutex_destroy(&of->mutex);
  free(of);
}

int group_open_count(const group* of) { return of->open_count; }
int64_t group_deadline_ms(const group* of) { return of->deadline_ms; }
void group_misbehave(group* of, int how) { of->mistake = how; }
int group_progress_count(const group* of) { return of->progress_count; }
void group_break(group* of, const char* message) { of->broken = message; }

// Waits for all ranks.
static int32_t meet(group* of, sealpoint_call* call) {
  int32_t code = SEALPOINT_OK;
  int round;
  pthread_mutex_lock(&of->mutex);
  round = of->round;
  if (++of->came == of->size) {
    of->came = 0;
    ++of->round;
    pthread_cond_broadcast(&of->all_came);
  }
  while (round == of->round && !of->is_interrupted && of->broken == NULL) {
    pthread_cond_wait(&of->all_came, &of->mutex);
  }
  if (of->is_interrupted || of->broken != NULL) code = SEALPOINT_COMM;
  pthread_mutex_unlock(&of->mutex);
  if (of->broken != NULL) {
    sealpoint_string message;
    message.data = of->broken;
    message.size = strlen(of->broken);
    sealpoint_call_set_message(call, message);
  }
  return code;
}

static int32_t take(sealpoint_call* call, int source, sealpoint_bytes bytes) {
  void* memory = sealpoint_call_receive(call, source, bytes.size);
  if (memory == NULL) return SEALPOINT_COMM;
  if (bytes.size > 0) memcpy(memory, bytes.data, (size_t)bytes.size);
  return SEALPOINT_OK;
}

static int32_t barrier(void* user, sealpoint_call* call) {
  return meet(((member*)user)->group, call);
}

// Everyone brings `mine`; rank `from` to `to` are taken by those that `takes`.
static int32_t exchange(member* self, sealpoint_call* call, sealpoint_bytes mine, int takes) {
  group* of = self->group;
  int32_t code;
  int i;
  of->slots[self->rank] = &mine;
  code = meet(of, call);
  if (takes && of->mistake == kTakesWrongly) {
    // Each of these is refused; the last one was taken before.
    if (sealpoint_call_receive(call, -1, 1) != NULL) return SEALPOINT_OK;
    if (sealpoint_call_receive(call, of->size, 1) != NULL) return SEALPOINT_OK;
    if (sealpoint_call_receive(call, 0, UINT64_MAX) != NULL) return SEALPOINT_OK;
    if (sealpoint_call_receive(call, 0, 1) == NULL) return SEALPOINT_OK;
    if (sealpoint_call_receive(call, 0, 1) != NULL) return SEALPOINT_OK;
    return SEALPOINT_TIMEOUT;  // all was as it should be
  }
  if (of->mistake == kTakesNothing) takes = 0;
  for (i = 0; takes && code == SEALPOINT_OK && i < of->size; ++i) {
    code = take(call, i, *(const sealpoint_bytes*)of->slots[i]);
  }
  return code == SEALPOINT_OK ? meet(of, call) : code;
}

static int32_t gather(void* user, sealpoint_call* call, sealpoint_bytes bytes, int32_t root) {
  return exchange((member*)user, call, bytes, ((member*)user)->rank == root);
}

static int32_t all_gather(void* user, sealpoint_call* call, sealpoint_bytes bytes) {
  return exchange((member*)user, call, bytes, 1);
}

static int32_t broadcast(void* user, sealpoint_call* call, sealpoint_bytes bytes, int32_t root) {
  member* self = (member*)user;
  group* of = self->group;
  int32_t code;
  of->slots[self->rank] = &bytes;
  code = meet(of, call);
  if (code == SEALPOINT_OK && self->rank != root) {
    code = take(call, 0, *(const sealpoint_bytes*)of->slots[root]);
  }
  return code == SEALPOINT_OK ? meet(of, call) : code;
}

static int32_t all_to_all(void* user, sealpoint_call* call, const sealpoint_bytes* outgoing) {
  member* self = (member*)user;
  group* of = self->group;
  int32_t code;
  int i;
  of->slots[self->rank] = outgoing;
  code = meet(of, call);
  for (i = 0; code == SEALPOINT_OK && i < of->size; ++i) {
    code = take(call, i, ((const sealpoint_bytes*)of->slots[i])[self->rank]);
  }
  return code == SEALPOINT_OK ? meet(of, call) : code;
}

static int32_t all_reduce_max(void* user, sealpoint_call* call, uint64_t* values, uint64_t count) {
  member* self = (member*)user;
  group* of = self->group;
  uint64_t* greatest = (uint64_t*)calloc((size_t)count + 1, sizeof(uint64_t));
  int32_t code;
  uint64_t i;
  int rank;
  of->slots[self->rank] = values;
  code = meet(of, call);
  for (rank = 0; code == SEALPOINT_OK && rank < of->size; ++rank) {
    const uint64_t* theirs = (const uint64_t*)of->slots[rank];
    for (i = 0; i < count; ++i) {
      const uint64_t flip = of->mistake == kReduceSigned ? (uint64_t)1 << 63 : 0;
      if (rank == 0 || (theirs[i] ^ flip) > (greatest[i] ^ flip)) greatest[i] = theirs[i];
    }
  }
  if (code == SEALPOINT_OK) code = meet(of, call);
  if (of->mistake == kReduceFails) code = SEALPOINT_TIMEOUT;
  if (code == SEALPOINT_OK) memcpy(values, greatest, (size_t)count * sizeof(uint64_t));
  free(greatest);
  return code;
}

static void set_deadline(void* user, int64_t milliseconds) {
  group* of = ((member*)user)->group;
  pthread_mutex_lock(&of->mutex);
  of->deadline_ms = milliseconds;
  pthread_mutex_unlock(&of->mutex);
}

static int32_t count_progress(void* user) {
  group* of = ((member*)user)->group->parent;
  pthread_mutex_lock(&of->mutex);
  ++of->progress_count;
  pthread_mutex_unlock(&of->mutex);
  return 0;
}

static int32_t duplicate(void* user, sealpoint_call* call, sealpoint_communicator_table* out) {
  member* self = (member*)user;
  group* of = self->group;
  int32_t code = meet(of, call);
  if (code != SEALPOINT_OK) return code;
  if (of->mistake == kDuplicateFails) return SEALPOINT_TIMEOUT;
  pthread_mutex_lock(&of->mutex);
  if (of->duplicate == NULL) {
    of->duplicate = group_create(of->size);
    of->duplicate->parent = of;
  }
  pthread_mutex_unlock(&of->mutex);
  *out = group_table(of->duplicate, self->rank, 1);
  if (of->mistake == kDuplicateIsNot || of->mistake == kDuplicateIsAnother) {
    if (of->mistake == kDuplicateIsNot) out->interrupt = NULL;
    if (of->mistake == kDuplicateIsNot) out->duplicate = NULL;
    if (of->mistake == kDuplicateIsAnother) out->rank = out->size;
  }
  if (of->mistake == kDuplicateProgresses) out->progress = count_progress;
  if (of->mistake == kDuplicateProgresses || of->mistake == kDuplicateWaits) {
    out->needs_progress = 1;
  }
  return meet(of, call);
}

static void interrupt_group(void* user, int32_t code) {
  group* of = ((member*)user)->group;
  (void)code;
  pthread_mutex_lock(&of->mutex);
  of->is_interrupted = 1;
  pthread_cond_broadcast(&of->all_came);
  pthread_mutex_unlock(&of->mutex);
}

static void count_open(group* of, int more) {
  pthread_mutex_lock(&of->mutex);
  of->open_count += more;
  pthread_mutex_unlock(&of->mutex);
  if (of->parent != NULL) count_open(of->parent, more);
}

static void release(void* user) {
  count_open(((member*)user)->group, -1);
  free(user);
}

sealpoint_communicator_table group_table(group* of, int rank, int duplicates) {
  sealpoint_communicator_table table;
  member* self = (member*)malloc(sizeof(member));
  self->group = of;
  self->rank = rank;
  count_open(of, 1);
  sealpoint_init(&table, sizeof table);
  table.rank = rank;
  table.size = of->size;
  table.host.data = "a host";
  table.host.size = 6;
  table.user = self;
  table.barrier = barrier;
  table.broadcast = broadcast;
  table.gather = gather;
  table.all_gather = all_gather;
  table.all_to_all = all_to_all;
  table.all_reduce_max = all_reduce_max;
  table.set_deadline = set_deadline;
  table.duplicate = duplicates ? duplicate : NULL;
  table.interrupt = interrupt_group;
  table.release = release;
  return table;
}
