import type { Dialect } from './dialects.js';
import type { ParseResult, Reading } from './parse-result.js';
import type { LabelWords, Undecided } from './scanner.js';
import type { ReadingContext } from './read-entry.js';
import type { Cursor } from '../cursor.js';
import type { OutputChannel } from './output-channel.js';

export type State = () => boolean;

/** The result of looking at the next characters: a handled mark, an incomplete one, or plain text. */
export type Found = 'found' | Undecided | undefined;

/** The position of an action, which decides what counts as one. */
export interface ActionContext {
  /** `own`: any JSON or name; `prose`: only declared tools, all else is text; `answer`: the same, if it is readable. */
  readonly kind: 'own' | 'prose' | 'answer';
  readonly name?: string;
  readonly fence?: string;
  /** The tool that was called without arguments directly before. */
  readonly bare?: string;
}

export interface ParserState {
  readonly dialect: Pick<Dialect, 'bareJson' | 'isList'>;
  readonly words: LabelWords;
  readonly needs: ReadingContext;
  readonly result: ParseResult;
  readonly cursor: Cursor;
  readonly output: OutputChannel;
  state: State;
  context: ActionContext;
  last: Reading;
  code: string | undefined;
  openFences: number;
  /** The content of fences in prose may be an example: it is one if prose follows. */
  isTemplate: boolean;
  followsTemplate: boolean;
  /** The action began after prose or within a line: it is quoted if text follows. */
  isEmbedded: boolean;
  followsEmbedded: boolean;
  input: State;
  /** Adds text that is no mark: an embedded action before it was an example. */
  addText(text: string): void;
  toProse(): void;
}
