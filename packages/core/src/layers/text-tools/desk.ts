import type { Dialect } from './dialects.js';
import type { Findings, Reading } from './findings.js';
import type { LabelWords, Undecided } from './peek.js';
import type { ReadingNeeds } from './read-entry.js';
import type { Tape } from './tape.js';
import type { Voice } from './voice.js';

export type State = () => boolean;

/** What comes of a look at the next characters: a mark that has been dealt with, one that may come, or plain text. */
export type Found = 'found' | Undecided | undefined;

/** Where an action stands, and so what may count as one. */
export interface Place {
  /** `own`: whatever it names; `prose`: what names a tool, all else is text; `answer`: the same, and only if it can be read. */
  readonly kind: 'own' | 'prose' | 'answer';
  readonly name?: string;
  readonly fence?: string;
  /** The tool that has been asked for without arguments right before. */
  readonly bare?: string;
}

export interface Desk {
  readonly dialect: Pick<Dialect, 'bareJson' | 'isList'>;
  readonly words: LabelWords;
  readonly needs: ReadingNeeds;
  readonly findings: Findings;
  readonly tape: Tape;
  readonly voice: Voice;
  state: State;
  place: Place;
  last: Reading;
  code: string | undefined;
  openFences: number;
  /** What is in them stands in prose, and may be an example: it is one if prose follows. */
  isTemplate: boolean;
  isBehindTemplate: boolean;
  input: State;
  toProse(): void;
}
