import { onContentUpdated, useData, withBase } from 'vitepress';
import DefaultTheme from 'vitepress/theme';
import { defineComponent, h, onMounted } from 'vue';
import { LiveCall } from './live-call.mjs';
import './style.css';

/** The entry that a page of the API reference belongs to. */
const EntryOfPage = defineComponent(() => {
  const { frontmatter, page } = useData();
  return () => {
    const { entry, entryLink } = frontmatter.value;
    if (entry === undefined) return undefined;
    const isEntry = page.value.title === entry;
    return h('nav', { class: 'entry-of-page', 'aria-label': 'Breadcrumb' }, [
      h('a', { href: withBase('/api/') }, 'API'),
      isEntry ? undefined : [' / ', h('a', { href: withBase(entryLink) }, entry)],
    ]);
  };
});

/** The default theme has no landmark on the home page. */
const addLandmark = () => document.querySelector('.VPHome')?.setAttribute('role', 'main');

const Layout = defineComponent(() => {
  onMounted(addLandmark);
  onContentUpdated(addLandmark);
  return () =>
    h(DefaultTheme.Layout, undefined, {
      'home-hero-image': () => h(LiveCall),
      'doc-before': () => h(EntryOfPage),
    });
});

export default {
  extends: DefaultTheme,
  Layout,
};
