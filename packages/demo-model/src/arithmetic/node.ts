import type { PieceType } from './phrases.js';
import type { Piece } from './pieces.js';

/** What a tool's expressions may hold, and what `it` stands for. */
export interface ExpressionOptions {
  /** They may hold units of measure, and conversions such as `5 miles to km`. */
  readonly units?: boolean;
  /** They may hold a percent sign. Without it `5%` is written `5 / 100`. */
  readonly percent?: boolean;
  /** The number or quantity that `it`, `that` and `the result` stand for. */
  readonly reference?: string | undefined;
}

/** How tightly the outermost operator of a node binds: a comparison, a sum, a product, a power, a value. */
export type Level = 0 | 1 | 2 | 3 | 4;

/** Arithmetic that has been read. */
export interface Node {
  readonly text: string;
  readonly level: Level;
  /** The piece behind it. */
  readonly next: number;
  /** How much arithmetic it holds: a number alone holds none. */
  readonly steps: number;
  /** It needs a result that is not there yet. */
  readonly waits: boolean;
  /** It is a quantity with a unit. */
  readonly unit: boolean;
  /** It is a percentage of this number. */
  readonly percent?: string;
  /** It is a part of what follows. */
  readonly fraction?: boolean;
}

/** What is read, and how. */
export interface Scope {
  readonly text: string;
  readonly pieces: readonly Piece[];
  readonly options: ExpressionOptions;
  /** The text asks whether something is so. */
  readonly whether: boolean;
  /** It begins where the text does, so that an operator may come first: `times two`. */
  readonly leads: boolean;
}

/** Reads a node that begins at a piece, if one does. */
export type Reader = (scope: Scope, at: number) => Node | undefined;

/** Makes a node of a value. */
export const atom = (text: string, next: number): Node => ({
  text,
  next,
  level: 4,
  steps: 0,
  waits: false,
  unit: false,
});

/** Makes a node of several. */
export const combine = (
  text: string,
  level: Level,
  nodes: readonly Node[],
  next: number,
): Node => ({
  text,
  level,
  next,
  steps: nodes.reduce((sum, { steps }) => sum + steps, 1),
  waits: nodes.some(({ waits }) => waits),
  unit: nodes.some(({ unit }) => unit),
});

/** Writes a node for a place that needs this level, in brackets where it binds less tightly. */
export const bracketed = (node: Node, level: Level): string =>
  node.level < level ? `(${node.text})` : node.text;

/** Adds or subtracts; a percentage of the left side, where the right one is a percentage. */
export const plus = (left: Node, right: Node, sign: '+' | '-', next: number): Node => {
  if (right.percent !== undefined && left.percent === undefined) {
    const factor = `(100 ${sign} ${right.percent}) / 100`;
    return combine(`${bracketed(left, 2)} * ${factor}`, 2, [left, right], next);
  }
  const text = `${bracketed(left, 1)} ${sign} ${bracketed(right, sign === '-' ? 2 : 1)}`;
  return combine(text, 1, [left, right], next);
};

/** Multiplies, divides or takes the remainder. */
export const times = (left: Node, right: Node, sign: string, next: number): Node =>
  combine(`${bracketed(left, 2)} ${sign} ${bracketed(right, 3)}`, 2, [left, right], next);

/** Makes a node of what `it` stands for. */
export const referenceTo = ({ options: { reference } }: Scope, next: number): Node => {
  const unit = reference !== undefined && /\p{L}$/u.test(reference);
  const level = unit ? 2 : reference?.startsWith('-') === true ? 3 : 4;
  return { ...atom(reference ?? '?', next), level, unit, waits: reference === undefined };
};

/** Tells whether a piece is of a type, and one of these texts where any are given. */
export const is = (
  { pieces }: Scope,
  at: number,
  type: PieceType,
  ...texts: readonly string[]
): boolean => {
  const piece = pieces[at];
  return piece?.type === type && (texts.length === 0 || texts.includes(piece.text));
};

/** Tells whether a piece is one of these words. */
export const isWord = (scope: Scope, at: number, ...words: readonly string[]): boolean =>
  is(scope, at, 'word', ...words);

/** Reads on for as long as there is a next step. */
export const fold = (
  first: Node | undefined,
  step: (left: Node) => Node | undefined,
): Node | undefined => {
  let node = first;
  for (let next = node && step(node); next !== undefined; next = step(next)) node = next;
  return node;
};
