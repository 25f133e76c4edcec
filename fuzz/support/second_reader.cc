// SPDX-License-Identifier: Apache-2.0
#include "fuzz/support/second_reader.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string_view>

#include <nlohmann/json.hpp>

#include "fuzz/support/target.h"

namespace sealpoint::fuzz {
namespace {

constexpr int kPatienceMs = 5000;

void AppendLe(std::string& text, std::size_t value, int count) {
  for (int i = 0; i < count; ++i) text.push_back(static_cast<char>(value >> 8 * i & 0xff));
}

std::string EncodeRequest(const std::map<std::string, Bytes>& files) {
  std::string request;
  AppendLe(request, files.size(), 4);
  for (const auto& [name, bytes] : files) {
    AppendLe(request, name.size(), 2);
    request += name;
    AppendLe(request, bytes.size(), 4);
    request += AsText(bytes);
  }
  return request;
}

bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

std::optional<Opinion> ParseReply(const std::string& reply) {
  const nlohmann::json json = nlohmann::json::parse(reply);
  Opinion opinion{.verdict = json.at("verdict"), .violations = {}, .content = {}};
  for (const auto& violation : json.at("violations")) {
    if (violation.at("rule").is_null()) return std::nullopt;  // it lacks a library for the check
    opinion.violations.insert(violation.at("code").get<std::string>() + " " +
                              violation.at("rule").get<std::string>() + " " +
                              violation.at("file").get<std::string>());
  }
  const auto& content = json.at("content");
  if (content.is_null()) return opinion;
  for (const auto& [name, digest] : content.at("tensors").items()) {
    opinion.content["tensor " + name] = digest;
  }
  for (const auto& [name, digest] : content.at("objects").items()) {
    opinion.content["object " + name] = digest;
  }
  return opinion;
}

// Starts the reader with these pipes as its input and output; -1 if there is no interpreter.
pid_t Spawn(int input, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  std::array<std::string, 3> words = {"python3", "-m", "sealpoint_reference.serve"};
  std::array<char*, 4> arguments = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  setenv("PYTHONPATH", SEALPOINT_SECOND_READER, 1);
  setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
  pid_t process = -1;
  const int error =
      posix_spawnp(&process, words[0].c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return error == 0 ? process : -1;
}

}  // namespace

std::string Opinion::ToString() const {
  std::string text = verdict + "\n";
  for (const std::string& violation : violations) text += "  " + violation + "\n";
  for (const auto& [name, digest] : content) text.append("  ").append(digest).append(name + "\n");
  return text;
}

std::unique_ptr<SecondReader> SecondReader::Start() {
  std::array<int, 2> requests{};
  std::array<int, 2> replies{};
  Require(pipe2(requests.data(), O_CLOEXEC) == 0 && pipe2(replies.data(), O_CLOEXEC) == 0,
          "no pipe");
  signal(SIGPIPE, SIG_IGN);  // a reader that has ended shows by the end of its output
  const pid_t process = Spawn(requests[0], replies[1]);
  close(requests[0]);
  close(replies[1]);
  if (process < 0) {
    std::fprintf(stderr, "The second reader is skipped: no python3 here.\n");
    close(requests[1]);
    close(replies[0]);
    return nullptr;
  }
  return std::unique_ptr<SecondReader>(new SecondReader(process, requests[1], replies[0]));
}

SecondReader::SecondReader(pid_t process, int requests, int replies)
    : process_(process), requests_(requests), replies_(replies) {}

SecondReader::~SecondReader() {
  close(requests_);
  close(replies_);
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
}

std::optional<std::string> SecondReader::ReadReply() {
  constexpr std::size_t kLengthSize = 4;
  std::string reply;
  std::size_t size = kLengthSize;
  while (reply.size() < size) {
    pollfd ready{.fd = replies_, .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, kPatienceMs) == 0) return std::nullopt;
    std::array<char, 65536> block{};
    const ssize_t count = read(replies_, block.data(), block.size());
    Require(count > 0, "the second reader ended");
    reply.append(block.data(), static_cast<std::size_t>(count));
    if (reply.size() >= kLengthSize) {
      size = kLengthSize;
      for (std::size_t i = 0; i < kLengthSize; ++i) {
        size += std::size_t{static_cast<unsigned char>(reply[i])} << 8 * i;
      }
    }
  }
  return reply.substr(kLengthSize);
}

std::optional<Opinion> SecondReader::Check(const std::map<std::string, Bytes>& files) {
  Require(WriteAll(requests_, EncodeRequest(files)), "the second reader ended");
  const std::optional<std::string> reply = ReadReply();
  if (!reply) return std::nullopt;
  return ParseReply(*reply);
}

}  // namespace sealpoint::fuzz
