// Skills from a folder, on Node.js.
export { skillsFolder, type SkillsFolderOptions } from './skills-folder.js';
