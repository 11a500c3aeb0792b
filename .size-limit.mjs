import { readFileSync } from 'node:fs';
import { URL } from 'node:url';

const limits = JSON.parse(
  readFileSync(new URL('scripts/house/size-limits.json', import.meta.url), 'utf8'),
);

/** What a dynamic import loads, few programs need: it is not measured. */
const withoutLazyImports = {
  name: 'without lazy imports',
  setup({ onResolve }) {
    onResolve({ filter: /^\./ }, ({ path, kind }) =>
      kind === 'dynamic-import' ? { path, external: true } : undefined,
    );
  },
};

/** These say of themselves that they have no side effects: bundlers drop an import of them that nothing uses. */
const withoutSideEffects = ({ ignore }) => ({
  name: 'without side effects',
  setup({ onResolve }) {
    onResolve({ filter: /^(rxjs|node:.*|(?:millrace|@millrace\/text-tools).*)$/ }, ({ path }) =>
      ignore.some((name) => path.startsWith(name.replace('*', '')))
        ? { path, external: true, sideEffects: false }
        : undefined,
    );
  },
});

export default limits.map((check) => ({
  ...check,
  // An ES module needs no helper for a dynamic import.
  modifyEsbuildConfig: (config) => ({
    ...config,
    format: 'esm',
    plugins: [withoutLazyImports, withoutSideEffects(check)],
  }),
}));
