import { restoreAsyncContext } from 'millrace';
import {
  bufferCount,
  concat,
  defer,
  from,
  map,
  mergeMap,
  type Observable,
  type ObservableInput,
  of,
  ReplaySubject,
  share,
} from 'rxjs';
import type { SearchDocument } from './document.js';
import { createSectionIndex, type SectionIndex } from './section-index.js';

/** The progress of an index, or the finished index. */
export type Indexing =
  | { readonly status: 'indexing'; readonly files: number }
  | { readonly status: 'ready'; readonly index: SectionIndex };

/** Documents between two progress reports. */
const batch = 25;

/**
 * Builds an index once. Subscribers share the build in progress, or get the finished index immediately. It is built
 * again if loading failed, or if all subscribers left before it was ready.
 */
export const indexOnce = (
  load: () => ObservableInput<SearchDocument | readonly SearchDocument[]>,
): Observable<Indexing> =>
  defer(() => {
    const index = createSectionIndex();
    const progress$ = from(load()).pipe(
      mergeMap((given): readonly SearchDocument[] => [given].flat()),
      bufferCount(batch),
      map((documents): Indexing => {
        index.add(documents);
        return { status: 'indexing', files: index.size };
      }),
    );
    return concat(progress$, of<Indexing>({ status: 'ready', index }));
  }).pipe(
    share({ connector: () => new ReplaySubject(1), resetOnComplete: false }),
    restoreAsyncContext(),
  );
