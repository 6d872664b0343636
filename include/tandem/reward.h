/* The reward ABI: what a shared object exports so that Tandem can score samples with it.
 *
 * Plain C, no dependency. C++ authors include reward.hpp instead, which writes all of this.
 *
 * A library exports one function, `tandem_rewards`, that returns the list of its reward functions.
 * Life cycle of a function: init(options) once, score(batch) any number of times, each followed by
 * free_results, then destroy. Unless a recipe says `isolation: thread`, all of it happens in a
 * process of its own that the trainer kills and restarts when it crashes or misses its deadline.
 */
#ifndef TANDEM_REWARD_H_
#define TANDEM_REWARD_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised whenever a struct below changes. A library of another number is refused. */
#define TANDEM_REWARD_ABI 1u
#define TANDEM_REWARD_ENTRY "tandem_rewards"

/* Bytes with their length: may hold NUL, is not terminated, is UTF-8 where the model wrote UTF-8.
 */
typedef struct tandem_text {
  const char* data;
  size_t size;
} tandem_text;

typedef struct tandem_message {
  tandem_text role; /* "system", "user", "assistant", "tool" */
  tandem_text content;
} tandem_message;

typedef struct tandem_reward_sample {
  tandem_text id;                 /* names the sample in messages */
  tandem_text prompt;             /* the prompt as text */
  tandem_text completion;         /* what the model wrote, special tokens skipped */
  tandem_text ground_truth;       /* empty where the data has none */
  tandem_text columns;            /* the whole data row, one JSON object */
  tandem_text finish_reason;      /* "stop", "length", "stop_string", "abort", "error" */
  const tandem_message* messages; /* the prompt's messages; none for raw text */
  size_t num_messages;
  const int32_t* completion_ids;
  size_t num_completion_ids;
} tandem_reward_sample;

typedef struct tandem_reward_batch {
  const tandem_reward_sample* samples;
  size_t num_samples;  /* 1 unless the function declares TANDEM_REWARD_BATCHED */
  int64_t step;        /* of the trainer */
  int64_t deadline_ms; /* time that this call may take, in a worker process */
} tandem_reward_batch;

typedef struct tandem_reward_extra { /* a text shown beside the sample */
  tandem_text name;
  tandem_text value;
} tandem_reward_extra;

typedef struct tandem_reward_metric { /* a number averaged over the step */
  tandem_text name;
  double value;
} tandem_reward_metric;

typedef enum tandem_reward_status {
  TANDEM_REWARD_SCORED = 0,
  TANDEM_REWARD_NOT_APPLICABLE = 1, /* the function says nothing about this sample */
  TANDEM_REWARD_FAILED = 2          /* `error` says why */
} tandem_reward_status;

typedef struct tandem_reward_result {
  int32_t status; /* a tandem_reward_status */
  double value;   /* finite, where scored */
  tandem_text error;
  const tandem_reward_extra* extras;
  size_t num_extras;
  const tandem_reward_metric* metrics;
  size_t num_metrics;
} tandem_reward_result;

/* Memory of the library, valid until free_results. */
typedef struct tandem_reward_results {
  const tandem_reward_result* results; /* one a sample, in order */
  size_t num_results;
  tandem_text error; /* why the whole batch failed, where score returns non-zero */
  void* owner;       /* for the library's own use */
} tandem_reward_results;

enum {
  TANDEM_REWARD_BATCHED = 1u,        /* score takes any number of samples at once */
  TANDEM_REWARD_NOT_THREAD_SAFE = 2u /* score must not be called from two threads at a time */
};

typedef struct tandem_reward_function {
  const char* name;
  uint32_t capabilities;
  /* Makes `*state` from the recipe's `options`, a JSON object. Non-zero is a refusal; `*error` then
   * points to text that lives as long as the library. */
  int (*init)(tandem_text options, void** state, tandem_text* error);
  /* Non-zero: the batch failed as a whole. Its samples are then scored one by one. */
  int (*score)(void* state, const tandem_reward_batch* batch, tandem_reward_results* out);
  void (*free_results)(void* state, tandem_reward_results* results);
  void (*destroy)(void* state);
} tandem_reward_function;

typedef struct tandem_reward_library {
  uint32_t abi; /* TANDEM_REWARD_ABI; read before anything else, so it stays the first field */
  size_t num_functions;
  const tandem_reward_function* const* functions;
} tandem_reward_library;

/* What a library defines, with default visibility. */
typedef const tandem_reward_library* (*tandem_rewards_entry)(void);

#ifdef __cplusplus
}
#endif

#endif /* TANDEM_REWARD_H_ */
