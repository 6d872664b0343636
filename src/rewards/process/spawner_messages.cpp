#include "rewards/process/spawner_messages.h"

#include <cerrno>
#include <cstring>

#include <sys/socket.h>

namespace tandem::rewards {
namespace {

// Room for one descriptor, aligned as the system wants it.
union ControlBuffer {
  char bytes[CMSG_SPACE(sizeof(int))];
  cmsghdr aligned;
};

}  // namespace

bool send_reply(int control, const SpawnerReply& reply, int descriptor) {
  SpawnerReply copy = reply;
  iovec part{&copy, sizeof(copy)};
  ControlBuffer buffer{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = buffer.bytes;
    message.msg_controllen = sizeof(buffer.bytes);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(control, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(sizeof(copy));
}

bool receive_reply(int control, SpawnerReply& reply, FileDescriptor& descriptor) {
  iovec part{&reply, sizeof(reply)};
  ControlBuffer buffer{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = buffer.bytes;
  message.msg_controllen = sizeof(buffer.bytes);
  ssize_t received = 0;
  do {
    received = ::recvmsg(control, &message, MSG_CMSG_CLOEXEC);
  } while (received < 0 && errno == EINTR);
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (received > 0 && header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof(int));
    descriptor = FileDescriptor(fd);
  }
  return received == static_cast<ssize_t>(sizeof(reply));
}

}  // namespace tandem::rewards
