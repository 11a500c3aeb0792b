/** What every peer is asked, with which tool and key: the same as in `src/lookup.ts`. */
export const question = 'What is the weather?';
export const apiKey = 'bench-key';

export const lookup = {
  name: 'lookup',
  description: 'Looks up the weather of a city.',
  run: ({ city, day }) => `12 degrees in ${city} on day ${day}`,
};

/**
 * The adapter of a framework whose calls are async iterables. `start` begins a call and gives its `parts`; `textOf` gives
 * the text of a part, or nothing, and throws what a part tells of a failure. Where parts tell of none, `ended` gives the
 * failure once they have ended. Nothing stands between the framework and `onDelta`.
 */
export function adapterOf(start, textOf = (part) => part) {
  async function call(script, { onDelta, signal } = {}) {
    const { parts, ended } = await start(script, signal);
    const answer = [];
    for await (const part of parts) {
      const delta = textOf(part);
      if (!delta) continue;
      answer.push(delta);
      onDelta?.(delta);
    }
    throwIfFailed(ended, signal);
    return answer.join('');
  }

  async function* pull(script, { signal } = {}) {
    const { parts, ended } = await start(script, signal);
    for await (const part of parts) {
      const delta = textOf(part);
      if (delta) yield delta;
    }
    throwIfFailed(ended, signal);
  }

  return { call, pull };
}

// Some end an aborted stream as if it were whole.
function throwIfFailed(ended, signal) {
  const failure = ended?.();
  if (failure !== undefined) throw failure;
  signal?.throwIfAborted();
}

/** The same for a conversation that the framework holds: `start` begins a call in it. */
export function conversationOf(start, textOf) {
  const { call } = adapterOf(start, textOf);
  return { call };
}

/** Makes a thing once per key, as a program makes its agents once and not for each call. */
export function once(make) {
  const made = new Map();
  return (key) => {
    if (!made.has(key)) made.set(key, make(key));
    return made.get(key);
  };
}
