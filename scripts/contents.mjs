// Packs every package that is published, and checks its manifest and that programs can import what is in it, with its types.
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { problemsOf as manifestProblems, published } from './manifests.mjs';
import { pack } from './pack.mjs';
import { readJson, root } from './workspaces.mjs';

/** The packages are ES modules for Node 20: what older resolvers make of them is no problem. */
const ignored = ['node10', 'node16-cjs'];

async function problemsOf(path, file) {
  const packed = await readFile(file);
  const tarball = packed.buffer.slice(packed.byteOffset, packed.byteOffset + packed.byteLength);
  const { messages, pkg } = await publint({ strict: true, pack: { tarball } });
  const { problems = [] } = await checkPackage(
    createPackageFromTarballData(new Uint8Array(packed)),
  );
  const unresolved = problems.filter(({ resolutionKind }) => !ignored.includes(resolutionKind));
  return [
    ...manifestProblems(path),
    ...messages.map((message) => formatMessage(message, pkg)),
    ...unresolved.map(({ kind, entrypoint = '', resolutionKind = '' }) =>
      [kind, entrypoint, resolutionKind].join(' '),
    ),
  ];
}

const folder = await mkdtemp(join(tmpdir(), 'contents-'));
try {
  const tarballs = await pack(folder);
  for (const path of published()) {
    const problems = await problemsOf(
      path,
      tarballs.get(readJson(root, path, 'package.json').name),
    );
    console.log(`${path}: ${problems.length === 0 ? 'right' : problems.join('\n  ')}`);
    if (problems.length > 0) process.exitCode = 1;
  }
} finally {
  await rm(folder, { recursive: true });
}
