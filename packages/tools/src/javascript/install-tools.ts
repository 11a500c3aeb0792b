/** The state of the sandbox that a replay needs to be the same. */
export interface Surroundings extends Clock {
  /** The names of the tools. */
  readonly names: readonly string[];
}

export interface Clock {
  /** The time that `Date` shows, in milliseconds. */
  readonly now: number;
  /** The seed of `Math.random`, a 32-bit integer. */
  readonly seed: number;
}

export interface ToolAnswer {
  readonly text: string;
  readonly isError: boolean;
}

/**
 * Adds `tools` to the globals of the sandbox, with an async function for each tool. `call` takes a name and the JSON of
 * the input.
 *
 * The sandbox evaluates the source of this function, before the code of the model, so it uses nothing from outside of itself.
 */
export const installTools = (
  call: (name: string, input: string) => Promise<ToolAnswer>,
  names: readonly string[],
): void => {
  const { parse, stringify } = JSON;
  const valueOf = (text: string): unknown => {
    try {
      const value: unknown = parse(text);
      // A string stays as it is, and so do `007` and `1.0`, which may be one.
      if (typeof value === 'object' || stringify(value) === text) {
        return typeof value === 'string' ? text : value;
      }
    } catch {
      // It is text.
    }
    return text;
  };
  const own: Record<string, unknown> = { __proto__: null };
  for (const name of names) {
    own[name] = async (input: unknown = {}) => {
      // Created before the wait: its stack has the line of the call.
      const error = new Error();
      if (typeof input !== 'object' || input === null || Array.isArray(input)) {
        throw new TypeError(`The tool '${name}' takes one object with its parameters.`);
      }
      const { text, isError } = await call(name, stringify(input));
      if (!isError) return valueOf(text);
      error.name = 'ToolError';
      error.message = text;
      throw error;
    };
  }
  const tools = new Proxy(Object.freeze(own), {
    get: (all, key) => {
      if (typeof key === 'symbol' || key === 'then' || key === 'toJSON') return undefined;
      if (key in all) return all[key];
      throw new ReferenceError(`There is no tool '${key}'. The tools are: ${names.join(', ')}.`);
    },
  });
  Object.defineProperty(globalThis, 'tools', { value: tools });
};

/** Makes `Date` and `Math.random` reproducible. The sandbox evaluates the source of this function, too. */
export const fixClock = ({ now, seed }: Clock): void => {
  const FixedDate = new Proxy(Date, {
    apply: (NativeDate) => new NativeDate(now).toString(),
    construct: (NativeDate, parts: unknown[], target) => {
      const given = parts.length === 0 ? [now] : parts;
      // It has no types.
      // eslint-disable-next-line @typescript-eslint/no-unsafe-return
      return Reflect.construct(NativeDate, given, target);
    },
    get: (NativeDate, key): unknown => (key === 'now' ? () => now : Reflect.get(NativeDate, key)),
  });
  Object.defineProperty(Date.prototype, 'constructor', { value: FixedDate });
  Object.defineProperty(globalThis, 'Date', { value: FixedDate });

  let state = seed;
  // mulberry32
  Math.random = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
};
