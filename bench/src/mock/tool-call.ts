import { lookup } from '../lookup.js';

/** One use of the tool that the model asks for. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** The text of the arguments. */
  readonly json: string;
}

/** The uses that the message of a number asks for. */
export const toolCallsOf = (message: number, count: number): readonly ToolCall[] =>
  Array.from({ length: count }, (_, index) => ({
    id: `call_${message}_${index}`,
    name: lookup.name,
    json: jsonPieces(index).join(''),
  }));

/** The arguments of the use at a place of its turn, as they are streamed: in four pieces, or in eight. */
export const jsonPieces = (index: number, isWhole = false): readonly string[] =>
  isWhole
    ? ['{"', 'city', '":', '"Os', 'lo', '","', 'day":', `${index}}`]
    : ['{"city"', ':"Oslo', '","day":', `${index}}`];
