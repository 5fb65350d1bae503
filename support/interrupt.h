// Ctrl-C and kill end the work where it cleans up behind itself: what has begun unwinds, and its destructors remove
// temporary files and folders and end other programs.
#pragma once

namespace tc {

/// Thrown where a signal has asked the process to end. It is no std::exception, so that nobody takes it for a failure.
struct Interrupted {
  int signal;
};

/// From now on SIGINT, SIGTERM and SIGHUP are noticed instead of ending the process: the first of them, a second one ends it
/// at once. Those that the parent has switched off stay so (nohup). For main().
void notice_interrupts();

/// The signal that came; 0: none.
int interrupting_signal();

/// Throws Interrupted if a signal came. Work that takes long calls this every now and then, wherever unwinding leaves
/// nothing half done.
void stop_if_interrupted();

/// For poll(): can be read once a signal came, also one that comes just before poll(). -1: nothing is noticed.
int interrupt_descriptor();

}  // namespace tc
