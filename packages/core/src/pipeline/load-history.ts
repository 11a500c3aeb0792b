import { concatMap, map } from 'rxjs';
import { opening$, openingForm } from '../opening.js';
import type { CallStage } from './call-stage.js';

/** Loads what memory holds, with the results that the call brings in their places. */
export const loadHistory: CallStage = (context) =>
  concatMap((state) => {
    const goesOn = state.status === 'prepared' && context.interruption.current === undefined;
    return context
      .perform({
        kind: 'open',
        id: 'open',
        input: state.input,
        run: () => opening$(state, context, goesOn),
        cut: () => opening$(state, context, false, true),
        form: openingForm(context.call),
      })
      .pipe(map((opening) => ({ ...state, ...opening })));
  });
