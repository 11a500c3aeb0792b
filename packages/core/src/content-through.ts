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
  window,
} from 'rxjs';
import type { MillraceError } from './errors.js';
import { isRecord } from './json.js';
import type { ModelChunk } from './model.js';
import { interceptorError } from './stage.js';

/** A piece of what a model says: text, thinking, a tool use or a whole block. */
export type ContentChunk = Extract<
  ModelChunk,
  { readonly type: 'text' | 'thinking' | 'toolUse' | 'block' }
>;

/** Ends a message where it stands. With feedback, the model is told why and asked for another. */
export interface StopChunk {
  readonly type: 'stop';
  readonly feedback?: string;
}

/** What `transformChunks` takes: an operator over the content of one message. */
export type ChunkTransform = OperatorFunction<ContentChunk, ContentChunk | StopChunk>;

/** What flows between a model and its draft. */
export type MessageChunk = ModelChunk | StopChunk;

/** Makes the chunk with which a transform ends a message: for good, or with feedback for another try. */
export const stopMessage = (feedback?: string): StopChunk => ({
  type: 'stop',
  ...(feedback === undefined ? {} : { feedback }),
});

/** A transform in its place. */
export interface ChunkStage {
  readonly name: string;
  readonly operator: ChunkTransform;
  readonly failOpen: boolean;
  /** Hears of an error that is passed over. */
  readonly onPassedOver: (error: MillraceError) => void;
}

/**
 * Leads the content of a message through a transform. All else goes around it, in its place: counts at once, the finish behind
 * the last of the content, and a restart begins with the operator anew. A transform that completes first stops the message.
 */
export const contentThrough = (stage: ChunkStage): OperatorFunction<MessageChunk, MessageChunk> =>
  connect((chunk$) =>
    chunk$.pipe(
      window(chunk$.pipe(filter(({ type }) => type === 'restart'))),
      switchMap((attempt$) => attempted$(attempt$, stage)),
    ),
  );

const attempted$ = (
  attempt$: Observable<MessageChunk>,
  stage: ChunkStage,
): Observable<MessageChunk> =>
  defer(() => {
    let end: MessageChunk | undefined;
    let isOver = false;
    const content$ = attempt$.pipe(
      tap({
        next: (chunk) => {
          if (isEnd(chunk)) end ??= chunk;
        },
        complete: () => {
          isOver = true;
        },
      }),
      takeWhile((chunk) => !isEnd(chunk)),
      filter(isContentChunk),
    );
    return merge(
      attempt$.pipe(filter((chunk) => !isEnd(chunk) && !isContentChunk(chunk))),
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
    let inHand: ContentChunk | undefined;
    return content$.pipe(
      tap((chunk) => {
        inHand = chunk;
      }),
      operator,
      map((chunk: unknown) => {
        if (!isContentChunk(chunk) && !isStop(chunk)) throw new Error('it made something else');
        inHand = undefined;
        return chunk;
      }),
      catchError((cause: unknown) => {
        const error = interceptorError(name, cause, 'It must make chunks of chunks.');
        if (!failOpen) return throwError(() => error);
        onPassedOver(error);
        return inHand === undefined ? content$ : concat(of(inHand), content$);
      }),
    );
  });

const isEnd = ({ type }: MessageChunk): boolean => type === 'finish' || type === 'stop';

const isStop = (chunk: unknown): chunk is StopChunk => isRecord(chunk) && chunk['type'] === 'stop';

const contentTypes: readonly unknown[] = ['text', 'thinking', 'toolUse', 'block'];

const isContentChunk = (chunk: unknown): chunk is ContentChunk =>
  isRecord(chunk) && contentTypes.includes(chunk['type']);
