import { createToolParts } from 'millrace';
import { capExceeded, type Caps } from './caps.js';
import { createNesting, measure } from './nesting.js';
import type { Piece } from './decode.js';

interface ToolCallCount {
  readonly depthOf: (json: string) => number;
  length: number;
  /** Some vendors repeat name and id with each chunk. */
  name: string;
  id: string;
}

const newCount = (): ToolCallCount => ({ depthOf: createNesting(), length: 0, name: '', id: '' });

/**
 * Creates a function that counts the chunks of one answer. It throws `tooLarge` at the first chunk that exceeds a cap.
 */
export const createCapCounter = (vendor: string, caps: Caps): ((piece: Piece) => void) => {
  // Split into tool calls exactly as the message will be, so that no chunk escapes a cap.
  let parts = createToolParts(0, () => false);
  const counted = new Map<object, ToolCallCount>();
  let textLength = 0;
  let mediaLength = 0;

  const check = (value: number, cap: keyof Caps): void => {
    if (value > caps[cap]) throw capExceeded(vendor, caps, cap);
  };
  const countOf = (part: object): ToolCallCount => {
    const known = counted.get(part);
    if (known !== undefined) return known;
    const first = newCount();
    check(counted.set(part, first).size, 'toolCalls');
    return first;
  };
  const addToolCall = (chunk: Extract<Piece, { readonly type: 'toolCall' }>): void => {
    const toolCall = countOf(parts.add(chunk, 0).part);
    const { json = '', input, name = toolCall.name, id = toolCall.id } = chunk;
    const whole = input === undefined ? undefined : measure(input);
    toolCall.length += json.length + (whole?.length ?? 0);
    if (name !== toolCall.name) toolCall.length += (toolCall.name = name).length;
    if (id !== toolCall.id) toolCall.length += (toolCall.id = id).length;
    check(toolCall.length, 'argumentLength');
    check(Math.max(toolCall.depthOf(json), whole?.depth ?? 0), 'depth');
  };
  return (piece) => {
    if (piece.type === 'restart') {
      parts = createToolParts(0, () => false);
      counted.clear();
      textLength = mediaLength = 0;
    } else if (piece.type === 'text') check((textLength += piece.text.length), 'textLength');
    else if (piece.type === 'thinking') {
      check((textLength += piece.text.length + (piece.signature?.length ?? 0)), 'textLength');
    } else if (piece.type === 'block') {
      check((mediaLength += measure(piece.block).length), 'eventLength');
    } else if (piece.type === 'toolCall') addToolCall(piece);
  };
};
