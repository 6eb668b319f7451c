import { listPage } from '../list-page.tsx'
import { JOB_LIST } from './job-list.tsx'

export const metadata = { title: JOB_LIST.title }

export default listPage(JOB_LIST)
