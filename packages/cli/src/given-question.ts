import { type Observable, of } from 'rxjs';
import type { Environment } from './environment.js';
import type { Arguments } from './parse-arguments.js';
import { type PipedQuestion, readQuestion$ } from './terminal/read-question.js';

/** Milliseconds that a pipe has to begin a question, where it was not asked for one. */
const patience = 500;

/** Emits the question of the arguments, or else that of the input; an empty one where there is neither. */
export const givenQuestion$ = (
  { question }: Pick<Arguments, 'question'>,
  { stdin, scheduler }: Pick<Environment, 'stdin' | 'scheduler'>,
): Observable<PipedQuestion> => {
  const timing = scheduler === undefined ? {} : { scheduler };
  if (question === '-') return readQuestion$(stdin, timing);
  if (question !== '' || stdin.isTTY === true) return of({ text: question, silent: false });
  return readQuestion$(stdin, { patience, ...timing });
};
