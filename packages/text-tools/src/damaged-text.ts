import { MillraceError, type ModelChunk } from 'millrace';
import { defer, mergeMap, type MonoTypeOperatorFunction, tap } from 'rxjs';

/**
 * Reads text with `read`. Errors with `connection` if that finds a tool call in an answer with bytes that are not UTF-8: the call may
 * differ from what the model wrote.
 */
export const withoutDamage =
  (read: MonoTypeOperatorFunction<ModelChunk>): MonoTypeOperatorFunction<ModelChunk> =>
  (source) =>
    defer(() => {
      let damage: readonly ModelChunk[] = [];
      let isDamaged = false;
      let hasCall = false;
      return source.pipe(
        tap((chunk) => {
          if (chunk.type === 'restart' && chunk.isSameRequest !== true) isDamaged = false;
          if (chunk.type !== 'text' || chunk.isDamaged !== true) return;
          isDamaged = true;
          damage = [mark];
        }),
        read,
        mergeMap((chunk) => {
          hasCall = chunk.type === 'toolCall' || (hasCall && chunk.type !== 'restart');
          if (isDamaged && hasCall) throw damaged();
          const chunks = damage.length === 0 ? [chunk] : [...damage, chunk];
          damage = [];
          return chunks;
        }),
      );
    });

/** For other readers of the same text. */
const mark: ModelChunk = { type: 'text', text: '', isDamaged: true };

const damaged = (): MillraceError =>
  new MillraceError(
    'connection',
    'The text of the model contains bytes that are not UTF-8, so its tool call may differ from what the model wrote. No tool runs. If a retry fails too, check the server, and the proxies in between.',
  );
