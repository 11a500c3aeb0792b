import { defer, of } from 'rxjs';
import { compileCase } from '../conditions.js';
import type { SwitchParams } from '../document.js';
import { noOutput } from '../scope.js';
import type { Work } from '../work.js';

/** Continues with the first case that matches. */
export const switchWork = ({ cases, otherwise = [] }: SwitchParams): Work => {
  const compiled = cases.map((it) => ({ to: it.to, holds: compileCase(it) }));
  return (scope) =>
    defer(() => {
      const found = compiled.find(({ holds }) => holds(scope));
      return of({ status: 'done', output: noOutput, to: found?.to ?? otherwise } as const);
    });
};
