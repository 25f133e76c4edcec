// SPDX-License-Identifier: Apache-2.0
#include "lib/s3/http_client.h"

#include <curl/curl.h>
#include <openssl/crypto.h>
#include <unistd.h>

#include <deque>
#include <future>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/s3/http_transfer.h"

namespace sealpoint::internal::s3 {

std::string HttpReply::header(std::string_view name) const {
  const auto found = headers.find(std::string(name));
  return found == headers.end() ? std::string() : found->second;
}

class HttpClient::Loop {
 public:
  Loop(CURLM* multi, const HttpOptions& options) : multi_(multi), options_(options) {
    curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(options.requests_max));
    curl_multi_setopt(multi_, CURLMOPT_PIPELINING, static_cast<long>(CURLPIPE_NOTHING));
    thread_ = std::thread([this] { Run(); });
  }

  ~Loop() {
    // The thread did not come along with fork(), nor did what its connections stand for: its handle
    // is left to the system.
    if (is_forked()) {
      static_cast<void>(new std::thread(std::move(thread_)));
      return;
    }
    {
      const std::scoped_lock lock(mutex_);
      is_ending_ = true;
    }
    curl_multi_wakeup(multi_);
    thread_.join();
    for (CURL* handle : idle_) curl_easy_cleanup(handle);
    curl_multi_cleanup(multi_);
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  bool is_forked() const { return getpid() != process_; }

  void Add(std::unique_ptr<HttpTransfer> transfer) {
    {
      const std::scoped_lock lock(mutex_);
      arrived_.push_back(std::move(transfer));
    }
    curl_multi_wakeup(multi_);
  }

 private:
  void Run() {
    std::deque<std::unique_ptr<HttpTransfer>> waiting;
    while (true) {
      bool is_ending = false;
      {
        const std::scoped_lock lock(mutex_);
        for (auto& transfer : arrived_) waiting.push_back(std::move(transfer));
        arrived_.clear();
        is_ending = is_ending_;
      }
      while (!waiting.empty() && running_.size() < options_.requests_max) {
        Begin(std::move(waiting.front()));
        waiting.pop_front();
      }
      if (is_ending && waiting.empty() && running_.empty()) return;
      int count = 0;
      curl_multi_perform(multi_, &count);
      if (FinishDone() > 0) continue;  // there is room, and what is new may have come
      curl_multi_poll(multi_, nullptr, 0, 1000, nullptr);
    }
  }

  void Begin(std::unique_ptr<HttpTransfer> transfer) {
    CURL* handle = nullptr;
    if (idle_.empty()) {
      handle = curl_easy_init();
    } else {
      handle = idle_.back();
      idle_.pop_back();
    }
    if (handle == nullptr) return transfer->Finish(CURLE_OUT_OF_MEMORY);
    transfer->Prepare(handle, options_);
    if (curl_multi_add_handle(multi_, handle) != CURLM_OK) {
      return transfer->Finish(CURLE_OUT_OF_MEMORY);
    }
    running_.emplace(handle, std::move(transfer));
  }

  int FinishDone() {
    int finished = 0;
    int left = 0;
    while (CURLMsg* message = curl_multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode code = message->data.result;
      const auto found = running_.find(message->easy_handle);
      const std::unique_ptr<HttpTransfer> transfer = std::move(found->second);
      running_.erase(found);
      curl_multi_remove_handle(multi_, transfer->handle());
      ++finished;
      transfer->Finish(code);
      idle_.push_back(transfer->TakeHandle());
    }
    return finished;
  }

  CURLM* multi_;
  const HttpOptions options_;
  const pid_t process_ = getpid();
  std::map<CURL*, std::unique_ptr<HttpTransfer>> running_;  // this and idle_ are the thread's
  std::vector<CURL*> idle_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<HttpTransfer>> arrived_;
  bool is_ending_ = false;
  std::thread thread_;
};

namespace {

// OpenSSL would free all that it has when the process ends: before global objects of the program
// are destroyed, of which a saver may have a save on its way. It asks for this with its first call.
CURLcode InitialiseLibraries() {
  OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
  return curl_global_init(CURL_GLOBAL_DEFAULT);
}

}  // namespace

HttpClient::HttpClient(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}
HttpClient::~HttpClient() = default;

Result<std::unique_ptr<HttpClient>> HttpClient::Create(const HttpOptions& options) {
  static const CURLcode initialised = InitialiseLibraries();
  CURLM* multi = initialised == CURLE_OK ? curl_multi_init() : nullptr;
  if (multi == nullptr) return MakeError(Code::kIo, "libcurl cannot be initialised");
  return std::unique_ptr<HttpClient>(new HttpClient(std::make_unique<Loop>(multi, options)));
}

void HttpClient::Start(HttpRequest request, std::function<void(HttpReply)> done) {
  if (loop_->is_forked()) {
    return done({.transport = Transport::kHopeless,
                 .transport_error = "this process was forked from the one that made the store; "
                                    "make a store of its own"});
  }
  loop_->Add(std::make_unique<HttpTransfer>(std::move(request), std::move(done)));
}

HttpReply HttpClient::Do(HttpRequest request) {
  std::promise<HttpReply> promise;
  Start(std::move(request), [&promise](HttpReply reply) { promise.set_value(std::move(reply)); });
  return promise.get_future().get();
}

}  // namespace sealpoint::internal::s3
