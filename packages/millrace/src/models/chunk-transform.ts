import {
  catchError,
  concat,
  connect,
  defer,
  EMPTY,
  filter,
  map,
  merge,
  type Observable,
  of,
  type OperatorFunction,
  switchMap,
  takeWhile,
  tap,
  throwError,
} from 'rxjs';
import { contained } from '../flow/contained.js';
import { type MillraceError, misuse } from '../values/errors.js';
import { isRecord } from '../values/json.js';
import type { ModelChunk } from './model.js';
import { interceptorError } from '../flow/stage.js';

/** A chunk with content: text and its citations, thinking, a tool call or a whole block. */
export type ContentChunk = Extract<
  ModelChunk,
  { readonly type: 'text' | 'textStart' | 'citation' | 'thinking' | 'toolCall' | 'block' }
>;

/** Ends a message at this point. With feedback, the model is asked again. */
export interface StopChunk {
  readonly type: 'stop';
  readonly feedback?: string;
}

/** An operator over the content of one message, for `transformChunks`. */
export type ChunkTransform = OperatorFunction<ContentChunk, ContentChunk | StopChunk>;

export type MessageChunk = ModelChunk | StopChunk;

/** Creates the chunk with which a transform ends a message; with feedback, the model is asked again. */
export const stopMessage = (feedback?: string): StopChunk => {
  if (feedback === '') throw misuse('stopMessage() takes feedback for the model, or no argument.');
  return { type: 'stop', ...(feedback === undefined ? {} : { feedback }) };
};

export interface ChunkStage {
  readonly name: string;
  readonly operator: ChunkTransform;
  readonly failOpen: boolean;
  readonly onPassedOver: (error: MillraceError) => void;
}

/**
 * Runs the content of a message through a transform. Other chunks keep their place; a restart starts the operator
 * again. A transform that completes first stops the message.
 */
export const transformContent = (stage: ChunkStage): OperatorFunction<MessageChunk, MessageChunk> =>
  connect((chunk$) =>
    merge(chunk$.pipe(filter(isRestart)), of(undefined)).pipe(
      switchMap((restart) => {
        const attempt$ = attempted$(chunk$, stage);
        return restart === undefined ? attempt$ : concat(of(restart), attempt$);
      }),
    ),
  );

const attempted$ = (
  chunk$: Observable<MessageChunk>,
  stage: ChunkStage,
): Observable<MessageChunk> =>
  defer(() => {
    /** The last finish, because content may follow the first one; or the stop of an inner transform. */
    let end: MessageChunk | undefined;
    let isOver = false;
    let early: ContentChunk[] | undefined = [];
    const note = (chunk: MessageChunk): void => {
      if (end !== undefined && isStop(end)) return;
      if (isEnd(chunk)) end = chunk;
      else if (isContentChunk(chunk)) early?.push(chunk);
    };
    const content$ = defer(() => {
      const held = early ?? [];
      early = undefined;
      const rest$ = chunk$.pipe(
        takeWhile((chunk) => !isStop(chunk)),
        filter(isContentChunk),
      );
      return isOver || (end !== undefined && isStop(end)) ? held : concat(held, rest$);
    });
    return merge(
      chunk$.pipe(
        tap({
          next: note,
          complete: () => {
            isOver = true;
          },
        }),
        filter((chunk) => !isEnd(chunk) && !isContentChunk(chunk) && !isRestart(chunk)),
      ),
      concat(
        transformed$(content$, stage),
        defer(() => (end !== undefined ? of(end) : isOver ? EMPTY : of(stopMessage()))),
      ),
    );
  });

const transformed$ = (
  content$: Observable<ContentChunk>,
  { name, operator, failOpen, onPassedOver }: ChunkStage,
): Observable<ContentChunk | StopChunk> =>
  defer(() => {
    let inHand: ContentChunk[] = [];
    const keep = (chunk: ContentChunk): void => {
      inHand.push(chunk);
    };
    const given$ = failOpen ? content$.pipe(tap(keep)) : content$;
    return defer(() => operator(given$)).pipe(
      contained(),
      map((chunk: unknown) => {
        if (!isContentChunk(chunk) && !isStop(chunk)) {
          throw new Error('it emitted something that is not a chunk');
        }
        inHand = [];
        return chunk;
      }),
      catchError((cause: unknown) => {
        const error = interceptorError(name, cause);
        if (!failOpen) return throwError(() => error);
        onPassedOver(error);
        return concat(inHand, content$);
      }),
    );
  });

const isEnd = ({ type }: MessageChunk): boolean => type === 'finish' || type === 'stop';

const isStop = (chunk: unknown): chunk is StopChunk => isRecord(chunk) && chunk['type'] === 'stop';

const isRestart = ({ type }: MessageChunk): boolean => type === 'restart';

const isContentChunk = (chunk: unknown): chunk is ContentChunk => {
  if (!isRecord(chunk)) return false;
  const { type, text, block, citation } = chunk;
  switch (type) {
    case 'text':
    case 'thinking':
      return typeof text === 'string';
    case 'toolCall':
    case 'textStart':
      return true;
    case 'citation':
      return isRecord(citation);
    default:
      return type === 'block' && isRecord(block);
  }
};
