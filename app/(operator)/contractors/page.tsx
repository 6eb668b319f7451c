import { listPage } from '../list-page.tsx'
import { CONTRACTOR_LIST } from './contractor-list.tsx'

export const metadata = { title: CONTRACTOR_LIST.title }

export default listPage(CONTRACTOR_LIST)
