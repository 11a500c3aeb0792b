import { readFileSync } from 'node:fs';
import { URL } from 'node:url';

const limits = JSON.parse(
  readFileSync(new URL('scripts/house/size-limits.json', import.meta.url), 'utf8'),
);
const checksSchemas = /core(, |\/(fitting|planning|long-term-memory))/;

/**
 * What checks schemas has a dynamic import of what few programs load: that is not measured, and an ES module needs no
 * helper for it.
 */
export default limits.map((check) => ({
  ...check,
  ...(checksSchemas.test(check.name) && {
    modifyEsbuildConfig: (config) => ({
      ...config,
      format: 'esm',
      external: [...config.external, './interpret.js'],
    }),
  }),
}));
