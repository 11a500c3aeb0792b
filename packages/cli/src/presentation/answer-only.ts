import { type AgentEvent, only, textOf } from '@millrace/core';
import { filter, map, type OperatorFunction } from 'rxjs';
import { printable } from './printable.js';

/** Turns the events of one call into its answer alone, once it is there. */
export const answerOnly: OperatorFunction<AgentEvent, string> = (event$) =>
  event$.pipe(
    only('postCall'),
    filter(({ parentId }) => parentId === undefined),
    map(({ reply }) => `${printable(textOf(reply)).trimEnd()}\n`),
  );
