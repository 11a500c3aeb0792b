/** What the model plays: turns that ask for tools, then an answer. Its name says it: `8x1-200`, `0x0-50-20`, `8x1-200w`. */
export interface Script {
  /** Turns that ask for tools, before the answer. */
  readonly turns: number;
  /** Tools that each of them asks for. */
  readonly tools: number;
  /** Text deltas of the answer. */
  readonly deltas: number;
  /** Milliseconds from one event to the next. 0: as fast as the client takes them. */
  readonly gapMs: number;
  /**
   * The harsher form: a response is one write, its frames have all fields of OpenAI's, arguments come in eight pieces, and tools
   * are `async` with a signal. What is measured is then the client, and not the arrival of packets.
   */
  readonly isWhole: boolean;
}

const pattern = /(?:^|-)(\d{1,4})x(\d{1,4})-(\d{1,7})(?:-(\d{1,5}))?(w)?$/;

/** Reads the script at the end of a model's name, behind any prefix. Undefined where there is none. */
export const readScript = (model: string): Script | undefined => {
  const found = pattern.exec(model);
  if (found === null) return undefined;
  const [turns = 0, tools = 0, deltas = 0, gapMs = 0] = found
    .slice(1, 5)
    .map((part) => Number(part || 0));
  return turns > 0 === tools > 0
    ? { turns, tools, deltas, gapMs, isWhole: found[5] !== undefined }
    : undefined;
};
