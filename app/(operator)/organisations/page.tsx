import { listPage } from '../list-page.tsx'
import { ORGANISATION_LIST } from './organisation-list.tsx'

export const metadata = { title: ORGANISATION_LIST.title }

export default listPage(ORGANISATION_LIST)
