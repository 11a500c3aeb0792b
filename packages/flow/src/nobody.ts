import { type Model, MillraceError } from '@millrace/core';
import { throwError } from 'rxjs';

/** Stands where a model must be given and none is asked. */
export const nobody: Model = {
  name: 'nobody',
  stream$: () =>
    throwError(() => new MillraceError('invalidState', 'This component asks no model.')),
};
