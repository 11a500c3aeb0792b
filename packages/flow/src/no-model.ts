import { MillraceError, type Model } from '@millrace/core';
import { throwError } from 'rxjs';

/** A placeholder for agents that never request their model. */
export const noModel: Model = {
  name: 'none',
  stream$: () =>
    throwError(() => new MillraceError('invalidState', 'This component has no model.')),
};
