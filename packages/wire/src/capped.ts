import { createToolParts, type ToolPart, type ToolUseChunk } from '@millrace/core/adapter';
import type { Caps } from './caps.js';
import { createNesting, measure } from './nesting.js';
import { overCap } from './over-cap.js';
import type { Piece } from './piece.js';

/** What is counted of one tool use. */
interface Counted {
  readonly depthOf: (json: string) => number;
  length: number;
  /** Some vendors repeat them with each piece. */
  name: string;
  id: string;
}

const begun = (): Counted => ({ depthOf: createNesting(), length: 0, name: '', id: '' });

/**
 * Makes what counts the pieces of one answer, one after the other. It throws `tooLarge` at the one that goes over a
 * cap.
 */
export const createCapped = (vendor: string, caps: Caps): ((piece: Piece) => void) => {
  // Told apart as in the message that they will be part of, so that nothing is a way round a cap.
  const parts = createToolParts(0, () => false);
  const counted = new Map<ToolPart, Counted>();
  let textLength = 0;

  const check = (value: number, cap: keyof Caps): void => {
    if (value > caps[cap]) throw overCap(vendor, caps, cap);
  };
  const takeText = (length: number): void => {
    textLength += length;
    check(textLength, 'textLength');
  };
  const countedOf = (part: ToolPart): Counted => {
    const known = counted.get(part);
    if (known !== undefined) return known;
    const first = begun();
    check(counted.set(part, first).size, 'toolUses');
    return first;
  };
  const takeToolUse = (chunk: ToolUseChunk): void => {
    const toolUse = countedOf(parts.add(chunk, 0).part);
    const { json = '', input, name = toolUse.name, id = toolUse.id } = chunk;
    const whole = input === undefined ? undefined : measure(input);
    toolUse.length += json.length + (whole?.length ?? 0);
    if (name !== toolUse.name) toolUse.length += (toolUse.name = name).length;
    if (id !== toolUse.id) toolUse.length += (toolUse.id = id).length;
    check(toolUse.length, 'argumentLength');
    check(Math.max(toolUse.depthOf(json), whole?.depth ?? 0), 'depth');
  };
  return (piece) => {
    if (piece.type === 'text') takeText(piece.text.length);
    else if (piece.type === 'thinking') {
      takeText(piece.text.length + (piece.signature?.length ?? 0));
    } else if (piece.type === 'block') takeText(measure(piece.block).length);
    else if (piece.type === 'toolUse') takeToolUse(piece);
  };
};
