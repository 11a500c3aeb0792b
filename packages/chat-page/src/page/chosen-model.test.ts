import { expect, it } from '@jest/globals';
import { chosenModelIn } from './chosen-model.js';

const kept = () => {
  const values = new Map<string, string>();
  return {
    getItem: (key: string) => values.get(key) ?? null,
    setItem: (key: string, value: string) => void values.set(key, value),
    removeItem: (key: string) => void values.delete(key),
  };
};

it('is the first model, until the tab has chosen another one', () => {
  const storage = kept();
  expect(chosenModelIn(storage, '/', []).read()).toBe(undefined);
  expect(chosenModelIn(storage, '/', ['small', 'large']).read()).toBe('small');
  chosenModelIn(storage, '/', ['small', 'large']).write('large');
  expect(chosenModelIn(storage, '/', ['small', 'large']).read()).toBe('large');
});

it('is no model that the site does not offer any more', () => {
  const storage = kept();
  chosenModelIn(storage, '/', ['small', 'large']).write('large');
  expect(chosenModelIn(storage, '/', ['small', 'medium']).read()).toBe('small');
});

it('is not kept by a storage that is full', () => {
  const full = {
    ...kept(),
    setItem: () => {
      throw new Error('The quota is exceeded.');
    },
  };
  chosenModelIn(full, '/', ['small', 'large']).write('large');
  expect(chosenModelIn(full, '/', ['small', 'large']).read()).toBe('small');
});

it('is that of one page: pages of other agents with the same models keep theirs', () => {
  const storage = kept();
  const pages = ['/', '/billing', '/billing/', '/support'];
  const models = ['small', 'large'];
  chosenModelIn(storage, '/billing', models).write('large');
  expect(pages.map((page) => chosenModelIn(storage, page, models).read())).toEqual(
    pages.map((page) => (page === '/billing' ? 'large' : 'small')),
  );
});
