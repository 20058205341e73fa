// SPDX-License-Identifier: MIT
//
// The least that an agent can be in Node, which has none: a mailbox of closures that is emptied one
// by one in the microtask queue. No names, no limits, no timers, no errors but those of a call.
'use strict';

class Agent {
  constructor(state) {
    this.state = state;
    this.mailbox = [];
    this.drained = null;
  }

  cast(handler, argument) {
    this.mailbox.push({ handler, argument, resolve: null, reject: null });
    this.wake();
  }

  call(handler, argument) {
    return new Promise((resolve, reject) => {
      this.mailbox.push({ handler, argument, resolve, reject });
      this.wake();
    });
  }

  wake() {
    if (this.drained === null) this.drained = Promise.resolve().then(() => this.drain());
  }

  // What arrives meanwhile goes into the next batch: taking from the front of an array is slow.
  drain() {
    while (this.mailbox.length > 0) {
      const batch = this.mailbox;
      this.mailbox = [];
      for (const message of batch) this.handle(message);
    }
    this.drained = null;
  }

  handle({ handler, argument, resolve, reject }) {
    if (resolve === null) {
      handler(this.state, argument);
      return;
    }
    try {
      resolve(handler(this.state, argument));
    } catch (error) {
      reject(error);
    }
  }
}

module.exports = { Agent };
