#include "rewards/process/channel.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <sys/socket.h>

namespace tandem::rewards {

namespace asio = boost::asio;

struct Channel::Impl {
  Impl(int fd, Framing how) : framing(how), socket(context, asio::local::stream_protocol(), fd) {}

  // Runs what was started until it calls `note` or the deadline passes.
  ChannelState run(Deadline deadline) {
    done = false;
    context.restart();
    context.run_until(deadline);
    if (done && !error) {
      return ChannelState::kOk;
    }
    const bool timed_out = !done;
    boost::system::error_code ignored;
    socket.close(ignored);
    context.restart();
    context.run();  // the handlers of what was cancelled
    return timed_out ? ChannelState::kTimedOut : ChannelState::kClosed;
  }

  void note(const boost::system::error_code& outcome) {
    done = true;
    error = outcome;
  }

  auto noting() {
    return [this](const boost::system::error_code& outcome, std::size_t) { note(outcome); };
  }

  Framing framing;
  asio::io_context context;
  asio::local::stream_protocol::socket socket;
  std::string unread;  // received beyond the last line
  bool done = false;
  boost::system::error_code error;
};

Channel::Channel(FileDescriptor socket, Framing framing)
    : impl_(std::make_unique<Impl>(socket.get(), framing)) {
  socket.release();  // owned by impl_ from here on
}

Channel::~Channel() = default;

ChannelState Channel::send(std::string_view message, Deadline deadline) {
  if (!impl_->socket.is_open()) {
    return ChannelState::kClosed;
  }
  const std::uint64_t size = message.size();
  const bool lines = impl_->framing == Framing::kLine;
  const std::array<asio::const_buffer, 3> parts = {
      asio::const_buffer(&size, lines ? 0 : sizeof(size)),
      asio::const_buffer(message.data(), message.size()),
      asio::const_buffer("\n", lines ? 1 : 0)};
  asio::async_write(impl_->socket, parts, impl_->noting());
  return impl_->run(deadline);
}

ChannelState Channel::receive(std::string& message, Deadline deadline) {
  if (!impl_->socket.is_open()) {
    return ChannelState::kClosed;
  }
  if (impl_->framing == Framing::kLine) {
    asio::async_read_until(
        impl_->socket, asio::dynamic_buffer(impl_->unread, kMaxFrameBytes), '\n', impl_->noting());
    const ChannelState state = impl_->run(deadline);
    const std::size_t end = impl_->unread.find('\n');
    if (state == ChannelState::kOk && end != std::string::npos) {
      message = impl_->unread.substr(0, end);
      impl_->unread.erase(0, end + 1);
    }
    return state;
  }
  std::uint64_t size = 0;
  asio::async_read(impl_->socket, asio::buffer(&size, sizeof(size)), impl_->noting());
  if (const ChannelState state = impl_->run(deadline); state != ChannelState::kOk) {
    return state;
  }
  if (size > kMaxFrameBytes) {
    return ChannelState::kClosed;
  }
  message.resize(size);
  asio::async_read(impl_->socket, asio::buffer(message), impl_->noting());
  return impl_->run(deadline);
}

namespace {

bool read_all(int socket, char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t got = ::recv(socket, data, size, 0);
    if (got == 0 || (got < 0 && errno != EINTR)) {
      return false;
    }
    data += got > 0 ? got : 0;
    size -= got > 0 ? static_cast<std::size_t>(got) : 0;
  }
  return true;
}

bool write_all(int socket, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t put = ::send(socket, data, size, MSG_NOSIGNAL);
    if (put < 0 && errno != EINTR) {
      return false;
    }
    data += put > 0 ? put : 0;
    size -= put > 0 ? static_cast<std::size_t>(put) : 0;
  }
  return true;
}

}  // namespace

bool read_frame(int socket, std::string& message) {
  std::uint64_t size = 0;
  if (!read_all(socket, reinterpret_cast<char*>(&size), sizeof(size)) || size > kMaxFrameBytes) {
    return false;
  }
  message.resize(size);
  return read_all(socket, message.data(), size);
}

bool write_frame(int socket, std::string_view message) {
  const std::uint64_t size = message.size();
  return write_all(socket, reinterpret_cast<const char*>(&size), sizeof(size)) &&
         write_all(socket, message.data(), message.size());
}

}  // namespace tandem::rewards
