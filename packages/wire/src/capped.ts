import type { ModelChunk } from '@millrace/core';
import { defer, type MonoTypeOperatorFunction, tap } from 'rxjs';
import type { Caps } from './caps.js';
import type { Piece } from './decode.js';
import { createNesting, measure } from './nesting.js';
import { overCap } from './over-cap.js';

type ToolUseChunk = Extract<ModelChunk, { readonly type: 'toolUse' }>;

/** What is counted of one tool use. */
interface Counted {
  readonly index: number | undefined;
  readonly id: string | undefined;
  readonly depthOf: (json: string) => number;
  name: string;
  length: number;
  isWhole: boolean;
}

/** Passes an answer on as long as it keeps to the caps, and errors with `tooLarge` at the chunk that does not. */
export const capped = (vendor: string, caps: Caps): MonoTypeOperatorFunction<Piece> => {
  const check = (value: number, cap: keyof Caps): void => {
    if (value > caps[cap]) throw overCap(vendor, caps, cap);
  };
  return (source) =>
    defer(() => {
      const counted: Counted[] = [];
      let textLength = 0;
      const takeText = (length: number): void => {
        textLength += length;
        check(textLength, 'textLength');
      };
      const takeToolUse = (chunk: ToolUseChunk): void => {
        const known = counted.findLast((it) => goesOn(it, chunk));
        const toolUse = known ?? begin(chunk);
        if (known === undefined) check(counted.push(toolUse), 'toolUses');
        if (toolUse.name === '') toolUse.name = chunk.name ?? '';
        const { json = '', input } = chunk;
        const whole = input === undefined ? undefined : measure(input);
        toolUse.isWhole ||= whole !== undefined;
        toolUse.length += json.length + (whole?.length ?? 0);
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

const begin = (chunk: ToolUseChunk): Counted => ({
  index: chunk.index,
  id: idOf(chunk),
  depthOf: createNesting(),
  name: chunk.name ?? '',
  length: 0,
  isWhole: false,
});

/**
 * Tells whether a piece goes on with a tool use, by the rule of the message that it will be part of: one that
 * tells apart by a new index, id or name begins another, so that none of them is a way round the cap.
 */
const goesOn = (toolUse: Counted, chunk: ToolUseChunk): boolean => {
  const { index, name } = chunk;
  const id = idOf(chunk);
  if (id !== undefined && toolUse.id !== undefined && id !== toolUse.id) return false;
  if (index !== undefined && toolUse.index !== undefined && index !== toolUse.index) return false;
  if (name === undefined) return true;
  if (toolUse.isWhole || (toolUse.name !== '' && toolUse.name !== name)) return false;
  return (id ?? index) !== undefined || (toolUse.name === '' && toolUse.length === 0);
};

const idOf = ({ id }: ToolUseChunk): string | undefined => (id === '' ? undefined : id);
