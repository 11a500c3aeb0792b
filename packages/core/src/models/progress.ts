import { EMPTY, type Observable, of } from 'rxjs';
import type { MillraceError } from '../errors.js';
import type { ModelChunk } from '../model.js';
import { isContent } from './is-content.js';

export interface Progress {
  /** Something has been emitted, be it a count only. */
  readonly isBegun: boolean;
  /** Something of the answer has been shown, and is not void. */
  readonly isShown: boolean;
  readonly isWhole: boolean;
}

export const nothingYet: Progress = { isBegun: false, isShown: false, isWhole: false };

export const progressBehind = (progress: Progress, chunk: ModelChunk): Progress => {
  if (chunk.type === 'restart') return nothingYet;
  const isShown = progress.isShown || isContent(chunk);
  const isWhole = progress.isWhole || chunk.type === 'finish';
  return progress.isBegun && isShown === progress.isShown && isWhole === progress.isWhole
    ? progress
    : { isBegun: true, isShown, isWhole };
};

/** What voids an attempt, so that nothing of it is mixed with the next one: neither its text nor its usage. */
export const voiding$ = ({ isBegun }: Progress, error: MillraceError): Observable<ModelChunk> =>
  isBegun ? of({ type: 'restart', why: `The request is sent again: ${error.message}` }) : EMPTY;
