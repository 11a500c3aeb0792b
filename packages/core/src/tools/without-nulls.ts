import { map, type Observable } from 'rxjs';
import { type Eventual, thenMap } from '../flow/contained.js';
import { withoutForbiddenNulls } from '../values/admits.js';
import { type Validation, type Validator, withoutHidden } from '../values/schema.js';

/** Validates; an invalid input again without the nulls that its schema forbids at optional keys. */
export const validatedWithoutNulls$ = (
  { jsonSchema, validation$ }: Validator,
  ...[input, hidden]: Parameters<Validator['validation$']>
): Observable<Validation> =>
  validation$(input, hidden).pipe(
    thenMap((first): Eventual<Validation> => {
      if (first.valid) return first;
      const given = withoutHidden(input, hidden);
      const repaired = withoutForbiddenNulls(given, jsonSchema);
      return repaired === given
        ? first
        : validation$(repaired, hidden).pipe(
            map((second) => (second.valid ? { ...second, repaired } : second)),
          );
    }),
  );
