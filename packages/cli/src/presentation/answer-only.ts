import { type AgentEvent, only, textOf } from '@millrace/core';
import { filter, map, type OperatorFunction } from 'rxjs';
import { printable } from './printable.js';

/** Emits only the answer of a call, when it is complete. */
export const answerOnly: OperatorFunction<AgentEvent, string> = (event$) =>
  event$.pipe(
    only('postCall'),
    filter(({ parentId }) => parentId === undefined),
    map(({ reply }) => `${printable(textOf(reply)).trimEnd()}\n`),
  );
