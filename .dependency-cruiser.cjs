const { anyFeature, kernel } = require('./scripts/house/kernel.cjs');

/** What may import what: arrows point down to the core, and a package is entered by its front door. */
const test = '\\.test(-d|-support)?\\.ts$';
const testing = '^packages/(millrace|deep-agent)/src/testing/';
const modules = (...names) => `node_modules/(${names.join('|')})/`;
const ours = modules('@millrace', 'millrace');
const allowedInCore = [
  '^packages/millrace/src/',
  modules(
    'rxjs',
    'ajv',
    '@cfworker/json-schema',
    'fast-deep-equal',
    'immer',
    'partial-json',
    '@standard-schema/spec',
    'json-schema-to-ts',
  ),
];

const rules = {
  'the-kernel-imports-no-feature': { from: kernel, to: { path: anyFeature } },
  'no-cycles': { from: {}, to: { circular: true } },

  // The exports maps close every other door: what they do not name does not resolve.
  'every-import-resolves': { from: {}, to: { couldNotResolve: true } },
  'relative-imports-stay-in-the-package': {
    from: { path: '^(packages/[^/]+|conformance/[^/]+|bench|examples)/' },
    to: { path: '^(?:packages|conformance|bench)/', pathNot: '^$1/' },
  },
  'packages-declare-what-they-import': {
    // The page is bundled with what it imports.
    from: {
      path: '^(?:packages|conformance|bench)/',
      pathNot: [test, '^packages/(chat-page|devtools)/src/page/'],
    },
    to: {
      dependencyTypes: ['npm-no-pkg', 'npm-dev', 'npm-unknown', 'unknown'],
      // An optional peer is told as one that is not there, too.
      dependencyTypesNot: ['npm-peer'],
    },
  },

  'adapters-know-only-the-core': {
    from: {
      path: '^packages/',
      // Tests of the server read what each store gives back.
      pathNot: [
        '^packages/(a2a|chat-page|cli|dbos|deep-agent|devtools|openai|anthropic|ai-sdk|presets|restate)/',
        '^packages/server/.*[.]test(-support)?[.]ts$',
        // Tests that compare native tool calls with those in text.
        '^packages/(millrace|tools)/.*[.]test[.]ts$',
      ],
    },
    to: {
      path: ours,
      pathNot: modules('millrace', '@millrace/fault-server', '@millrace/postgres-server'),
    },
  },
  'dbos-knows-only-the-core-and-the-store': {
    from: { path: '^packages/dbos/', pathNot: test },
    to: { path: ours, pathNot: modules('millrace', '@millrace/store') },
  },
  'presets-know-only-the-core-and-text-tools': {
    from: { path: '^packages/presets/' },
    to: { path: ours, pathNot: modules('millrace', '@millrace/text-tools') },
  },
  'deep-agents-know-the-core-skills-and-tools': {
    from: { path: '^packages/deep-agent/', pathNot: test },
    to: { path: ours, pathNot: modules('millrace', '@millrace/skills', '@millrace/tools') },
  },
  'restate-knows-only-the-core': {
    from: { path: '^packages/restate/', pathNot: test },
    to: { path: ours, pathNot: modules('millrace') },
  },
  'the-chat-page-knows-only-the-core-and-the-server': {
    from: { path: '^packages/chat-page/', pathNot: test },
    to: { path: ours, pathNot: modules('millrace', '@millrace/server') },
  },
  'devtools-know-only-the-core-the-server-and-the-wire': {
    from: { path: '^packages/devtools/', pathNot: test },
    to: { path: ours, pathNot: modules('millrace', '@millrace/server', '@millrace/wire') },
  },
  'vendors-know-only-the-core-and-wire': {
    from: { path: '^packages/(openai|anthropic|ai-sdk)/' },
    to: {
      path: ours,
      pathNot: modules('millrace', '@millrace/wire', '@millrace/fault-server'),
    },
  },
  'a2a-knows-the-core-and-the-types-of-the-server': {
    from: { path: '^packages/a2a/', pathNot: test },
    to: {
      path: ours,
      pathNot: modules('millrace', '@millrace/server'),
    },
  },
  'a2a-takes-only-types-of-the-server': {
    from: { path: '^packages/a2a/', pathNot: test },
    to: { path: modules('@millrace/server'), dependencyTypesNot: ['type-only'] },
  },
  'only-tests-play-faults': {
    from: { path: '^packages/', pathNot: test },
    to: { path: modules('@millrace/fault-server') },
  },

  'only-tests-start-databases': {
    from: { path: '^packages/', pathNot: test },
    to: { path: modules('@millrace/postgres-server') },
  },

  'only-dbos-knows-that-engine': {
    from: { path: '^packages/', pathNot: ['^packages/dbos/', test] },
    to: { path: modules('@dbos-inc') },
  },
  'only-restate-knows-that-engine': {
    from: { path: '^packages/', pathNot: ['^packages/restate/', test] },
    to: { path: modules('@restatedev') },
  },

  'only-otel-knows-open-telemetry': {
    from: { path: '^packages/', pathNot: ['^packages/otel/', test] },
    to: { path: modules('@opentelemetry') },
  },
  'flows-know-no-canvas-of-another-product': {
    from: { path: '^packages/flow/src/', pathNot: '^packages/flow/src/ragflow/' },
    to: { path: '^packages/flow/src/ragflow/' },
  },
  'only-mcp-speaks-the-protocol': {
    from: { path: '^packages/', pathNot: ['^packages/mcp/', test] },
    to: { path: modules('@modelcontextprotocol') },
  },
  'only-a2a-speaks-that-protocol': {
    from: { path: '^packages/', pathNot: ['^packages/a2a/', test] },
    to: { path: modules('@a2a-js/sdk') },
  },

  'core-imports-little': {
    from: { path: '^packages/millrace/src/', pathNot: test },
    to: { path: '.', pathNot: allowedInCore },
  },
  'schema-packages-give-the-core-only-types': {
    from: { path: '^packages/millrace/src/', pathNot: test },
    to: {
      path: modules('@standard-schema/spec', 'json-schema-to-ts'),
      dependencyTypesNot: ['type-only'],
    },
  },
  'production-does-not-import-testing': {
    from: {
      path: '^packages/[^/]+/src/',
      pathNot: [testing, test],
    },
    to: { path: '/testing/' },
  },
};

const core = '^packages/millrace/src/';
const pathOf = (room) => `${core}${room.replace('.', '\\.')}(?:/|$)`;

/** The rooms of core, and the files between them. Each imports only from those before it. */
const rooms = [
  ...['values', 'flow', 'schema', 'models', 'events.ts', 'step.ts', 'tools', 'run.ts', 'seams'],
  ...['phases', 'loop.ts', 'call', 'agent.ts', 'operators', 'memories', 'journal', 'layers'],
  ...['testing', 'index.ts'],
];
const roomRules = rooms.slice(0, -1).map((room, index) => [
  `${room}-imports-only-rooms-below-it`,
  {
    from: { path: pathOf(room), pathNot: test },
    to: { path: rooms.slice(index + 1).map(pathOf) },
  },
]);

const listed = [...rooms.map(pathOf), test];
const listRules = {
  'every-file-of-core-is-in-a-room': { from: { path: core, pathNot: listed }, to: {} },
  'nobody-imports-from-an-unlisted-room': { from: {}, to: { path: core, pathNot: listed } },
};

/** Layers know nothing of each other, but for these. */
const knownTo = {
  fitting: ['interceptors', 'select-tools.ts'],
  guards: ['interceptors', 'traffic'],
  'long-term-memory': ['output.ts', 'planning', 'retrieval', 'select-tools.ts', 'traffic'],
  planning: ['retrieval', 'select-tools.ts'],
  sessions: ['approval.ts', 'interceptors', 'interrupt-on.ts', 'traffic'],
  teams: ['output.ts', 'select-tools.ts', 'sessions'],
};
const layerRules = {
  'layers-know-nothing-of-each-other': {
    from: {
      path: `${core}layers/([^/]+)`,
      pathNot: [test, ...Object.keys(knownTo).map((layer) => pathOf(`layers/${layer}`))],
    },
    to: { path: `${core}layers/`, pathNot: `${core}layers/$1` },
  },
  ...Object.fromEntries(
    Object.entries(knownTo).map(([layer, known]) => [
      `${layer}-knows-few-other-layers`,
      {
        from: { path: pathOf(`layers/${layer}`), pathNot: test },
        to: {
          path: `${core}layers/`,
          pathNot: [layer, ...known].map((name) => `${core}layers/${name}(?:/|$)`),
        },
      },
    ]),
  ),
};

module.exports = {
  forbidden: Object.entries({
    ...rules,
    ...listRules,
    ...Object.fromEntries(roomRules),
    ...layerRules,
  }).map(([name, rule]) => ({
    name,
    severity: 'error',
    ...rule,
  })),
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    exclude: { path: '^examples/(dist|temp|platforms)/' },
    doNotFollow: { path: 'node_modules' },
    // Workspaces keep their names, so that they are told apart from relative paths into a package.
    preserveSymlinks: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['types', 'import', 'default'],
      extensions: ['.ts', '.tsx', '.js', '.d.ts'],
    },
  },
};
