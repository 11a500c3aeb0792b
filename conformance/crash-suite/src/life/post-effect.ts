import { map, type Observable } from 'rxjs';
import { fromFetch } from 'rxjs/fetch';
import type { Effect } from '../script/script-agent.js';

/** Does an effect at a server, for the process of this name. */
export const postEffect =
  (url: string, life: string, onAnswer: () => void) =>
  (effect: Effect): Observable<unknown> =>
    fromFetch(url, { method: 'POST', body: JSON.stringify({ ...effect, life }) }).pipe(
      map(({ ok }) => {
        if (!ok) throw new Error('The effect was refused.');
        onAnswer();
      }),
    );
