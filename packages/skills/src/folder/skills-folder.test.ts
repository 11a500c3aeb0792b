import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execFileSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { firstValueFrom } from 'rxjs';
import { skillsFolder } from './index.js';

let root: string;
let outside: string;

const put = (path: string, content: string | Uint8Array): void => {
  const place = join(root, path);
  mkdirSync(join(place, '..'), { recursive: true });
  writeFileSync(place, content);
};

const skill = (name: string): string =>
  `---\nname: ${name}\ndescription: About ${name}.\n---\nDo it.`;

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'skills-'));
  outside = mkdtempSync(join(tmpdir(), 'outside-'));
  writeFileSync(join(outside, 'secret.txt'), 'secret');
  writeFileSync(join(outside, 'SKILL.md'), skill('linked'));
  put('good/SKILL.md', skill('good'));
  put('good/references/prices.md', 'Bread: 3 EUR');
  put('good/scripts/run.py', 'print(1)');
  put('good/.env', 'KEY=1');
  put('good/binary.bin', new Uint8Array([1, 0, 2]));
  put('good/latin.txt', new Uint8Array([0xe9, 0x20]));
  put('good/large.txt', 'x'.repeat(2_000));
  put('other/SKILL.md', skill('other'));
  put('renamed/SKILL.md', skill('another-name'));
  put('broken/SKILL.md', '---\nname: broken\ndescription: [\n---\n');
  put('bomb/SKILL.md', '---\nname: bomb\ndescription: &a x\nmetadata: { b: *a }\n---\n');
  put('huge/SKILL.md', `${skill('huge')}${'x'.repeat(2_000)}`);
  put('not-a-skill/README.md', 'No skill.');
  put('README.md', 'No skill.');
  symlinkSync(join(outside, 'secret.txt'), join(root, 'good/link.txt'));
  symlinkSync(outside, join(root, 'good/away'));
  symlinkSync(join(root, 'good/scripts/run.py'), join(root, 'good/inside.py'));
  symlinkSync(outside, join(root, 'linked'));
  execFileSync('mkfifo', [join(root, 'good/pipe')]);
});

afterAll(() => {
  rmSync(root, { recursive: true });
  rmSync(outside, { recursive: true });
});

const source = () => skillsFolder(root, { maxBytes: 1_000 });
const read = (path: string) => firstValueFrom(source().readFile$('good', path));

describe('T22: skillsFolder', () => {
  it('lists the skills by name, and what is wrong with others by file and line', async () => {
    const { skills, problems } = await firstValueFrom(source().list$());
    expect(skills).toEqual([
      { name: 'good', description: 'About good.' },
      { name: 'other', description: 'About other.' },
    ]);
    expect(problems).toEqual([
      expect.stringMatching(/^The skill 'bomb' is left out: bomb\/SKILL.md:4: Aliases/u),
      expect.stringMatching(/^The skill 'broken' is left out: broken\/SKILL.md:\d: /u),
      expect.stringMatching(/^The skill 'huge' is left out: .*has 2\d{3} bytes/u),
      expect.stringMatching(/^The skill 'linked' is left out: .*outside/u),
      expect.stringMatching(/^The skill 'renamed' is left out: .*'another-name'/u),
    ]);
  });

  it('reads a skill again after it was edited', async () => {
    const { read$ } = source();
    put('edited/SKILL.md', skill('edited'));
    expect((await firstValueFrom(read$('edited'))).instructions).toBe('Do it.');
    put('edited/SKILL.md', `${skill('edited')} Quickly.`);
    expect((await firstValueFrom(read$('edited'))).instructions).toBe('Do it. Quickly.');
    rmSync(join(root, 'edited'), { recursive: true });
  });

  it('names the files of a skill, without hidden ones and links', async () => {
    expect((await firstValueFrom(source().read$('good'))).files).toEqual([
      'binary.bin',
      'large.txt',
      'latin.txt',
      'references/prices.md',
      'scripts/run.py',
    ]);
    expect(await read('references/prices.md')).toBe('Bread: 3 EUR');
    expect(await read('inside.py')).toBe('print(1)');
  });

  it.each([
    ['../other/SKILL.md', 'outside'],
    ['../../etc/passwd', 'outside'],
    ['/etc/passwd', 'outside'],
    ['link.txt', 'outside'],
    ['away/secret.txt', 'outside'],
    ['away/nothing.txt', 'outside'],
    ['', 'outside'],
    ['a\0b', 'NUL'],
    ['x'.repeat(10_000), 'longer than'],
    ['.env', 'hidden'],
    ['binary.bin', 'is not text'],
    ['latin.txt', 'is not text'],
    ['large.txt', 'has 2000 bytes'],
    ['pipe', 'not a regular file'],
    ['references', 'not a regular file'],
    ['nothing.md', "The skill 'good' has no file 'nothing.md'."],
    ['SKILL.md/x', "The skill 'good' has no file"],
  ])('X17: refuses the path %j, without a path of the machine', async (path, message) => {
    const error = await read(path).then(
      () => 'read',
      (thrown: unknown) => String(thrown),
    );
    expect(error).toContain(message);
    expect(error).not.toContain(root);
    expect(error).not.toContain(outside);
  });

  it.each(['..', '../outside', '/', '.', 'linked', 'a\0'])(
    'X17: refuses the skill %j',
    async (name) => {
      await expect(firstValueFrom(source().read$(name))).rejects.toThrow();
      await expect(firstValueFrom(source().readFile$(name, 'secret.txt'))).rejects.toThrow();
    },
  );

  it('names the folder to pass in place of that of one skill', async () => {
    const listed = await firstValueFrom(skillsFolder(join(root, 'other')).list$());
    expect(listed).toEqual({
      skills: [],
      problems: [
        expect.stringMatching(/\/other' is a skill itself: .* Pass the folder that contains it: /u),
      ],
    });
    expect(listed.problems[0]).toContain(`: skillsFolder('${root}').`);
  });

  it('reads up to a number of skills', async () => {
    const { skills, problems } = await firstValueFrom(skillsFolder(root, { maxSkills: 3 }).list$());
    expect(skills.length).toBeLessThan(3);
    expect(problems.join()).toContain("Raise 'maxSkills'");
  });

  it('refuses a folder that is not there, and unknown options', () => {
    expect(() => skillsFolder(join(root, 'none'))).toThrow('there is no folder');
    expect(() => skillsFolder(join(root, 'README.md'))).toThrow('there is no folder');
    expect(() => skillsFolder(root, { max: 1 } as never)).toThrow("no option 'max'");
  });
});
