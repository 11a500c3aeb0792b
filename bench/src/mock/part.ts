import type { Wire } from './wire.js';

/** The message that a request is answered with. */
export interface Part {
  readonly wire: Wire;
  /** Its number in the conversation. */
  readonly message: number;
  /** So many tools that it asks for; 0 where it is the answer. */
  readonly tools: number;
  /** So many deltas that the answer has. */
  readonly deltas: number;
  /** See `Script`. */
  readonly isWhole: boolean;
}

/** The message as one JSON value. */
export const wholeOf = ({ wire, message, tools, deltas }: Part): unknown =>
  tools > 0 ? wire.wholeTools(message, tools) : wire.wholeAnswer(message, deltas);

/** Made once for all requests that are answered with them. */
const known = new Map<string, readonly Buffer[]>();

/** The message as the events of a stream. */
export const framesOf = ({ wire, message, tools, deltas, isWhole }: Part): readonly Buffer[] => {
  const key = [wire.path, message, tools, tools > 0 ? '' : deltas, isWhole].join();
  const frames =
    known.get(key) ??
    (tools > 0
      ? wire.toolFrames(message, tools, isWhole)
      : wire.answerFrames(message, deltas, isWhole));
  known.set(key, frames);
  return frames;
};
