import { render } from 'preact';

const root = document.querySelector('#page');
if (root !== null) render(<p>Millrace devtools</p>, root);
