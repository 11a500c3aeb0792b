import { createToolParts, type ToolPart, type ToolUseChunk } from '@millrace/core/adapter';
import { defer, type MonoTypeOperatorFunction, tap } from 'rxjs';
import type { Caps } from './caps.js';
import type { Piece } from './decode.js';
import { createNesting, measure } from './nesting.js';
import { overCap } from './over-cap.js';

/** What is counted of one tool use. */
interface Counted {
  readonly depthOf: (json: string) => number;
  length: number;
  /** Some vendors repeat them with each piece. */
  name: string;
  id: string;
}

const begun = (): Counted => ({ depthOf: createNesting(), length: 0, name: '', id: '' });

/** Passes an answer on as long as it keeps to the caps, and errors with `tooLarge` at the chunk that does not. */
export const capped = (vendor: string, caps: Caps): MonoTypeOperatorFunction<Piece> => {
  const check = (value: number, cap: keyof Caps): void => {
    if (value > caps[cap]) throw overCap(vendor, caps, cap);
  };
  return (source) =>
    defer(() => {
      // Told apart as in the message that they will be part of, so that nothing is a way round a cap.
      const parts = createToolParts(0, () => false);
      const counted = new Map<ToolPart, Counted>();
      let textLength = 0;
      const takeText = (length: number): void => {
        textLength += length;
        check(textLength, 'textLength');
      };
      const takeToolUse = (chunk: ToolUseChunk): void => {
        const { part } = parts.add(chunk, 0);
        const toolUse = counted.get(part) ?? begun();
        check(counted.set(part, toolUse).size, 'toolUses');
        const { json = '', input, name = toolUse.name, id = toolUse.id } = chunk;
        const whole = input === undefined ? undefined : measure(input);
        toolUse.length += json.length + (whole?.length ?? 0);
        if (name !== toolUse.name) toolUse.length += (toolUse.name = name).length;
        if (id !== toolUse.id) toolUse.length += (toolUse.id = id).length;
        check(toolUse.length, 'argumentLength');
        check(Math.max(toolUse.depthOf(json), whole?.depth ?? 0), 'depth');
      };
      return source.pipe(
        tap((chunk) => {
          if (chunk.type === 'text') takeText(chunk.text.length);
          else if (chunk.type === 'thinking') {
            takeText(chunk.text.length + (chunk.signature?.length ?? 0));
          } else if (chunk.type === 'block') takeText(measure(chunk.block).length);
          else if (chunk.type === 'toolUse') takeToolUse(chunk);
        }),
      );
    });
};
