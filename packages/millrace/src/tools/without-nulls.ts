import type { Observable } from 'rxjs';
import { andThen, atOnce, type Eventual, deferWork } from '../flow/eventual.js';
import { withoutForbiddenNulls } from '../values/admits.js';
import { type Validation, type Validator, withoutHidden } from '../values/schema.js';

/** Validates; an invalid input again without the nulls that its schema forbids at optional keys. */
export const validatedWithoutNulls$ = (
  { jsonSchema, validation$ }: Validator,
  ...[input, hidden]: Parameters<Validator['validation$']>
): Observable<Validation> =>
  deferWork(() =>
    andThen(atOnce(validation$(input, hidden)), (first): Eventual<Validation> => {
      if (first.valid) return first;
      const given = withoutHidden(input, hidden);
      const repaired = withoutForbiddenNulls(given, jsonSchema);
      return repaired === given
        ? first
        : andThen(atOnce(validation$(repaired, hidden)), (second) =>
            second.valid ? { ...second, repaired } : second,
          );
    }),
  );
