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

/** How far an index is. */
export type Indexing =
  | { readonly status: 'indexing'; readonly files: number }
  | { readonly status: 'ready'; readonly index: SectionIndex };

/** Documents that are indexed between two words of progress. */
const batch = 25;

/**
 * Builds an index once. Whoever subscribes while it is built joins in; whoever comes later gets it at once. It
 * is built anew where loading failed, or where all had left before it was ready.
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
  }).pipe(share({ connector: () => new ReplaySubject(1), resetOnComplete: false }));
