// Ctrl-C and SIGTERM as a wish to end at the next safe point.
#pragma once

namespace tandem::app {

/// From now on SIGINT and SIGTERM are only noted; a second one ends the process at once.
void watch_for_signals();

/// The signal that was noted, or 0. Any thread.
int noted_signal();

/// Forgets it; for tests.
void forget_signal();

}  // namespace tandem::app
